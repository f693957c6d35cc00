"""What probing sessions would take, without asking anybody."""

from __future__ import annotations

from concurrent.futures import Future

from theodolite.core.inquiry import Query, Reply
from theodolite.core.policy import Decision
from theodolite.core.reading import Cause, Failure
from theodolite.runtime.session import Session

__all__ = ("Estimate",)

# Characters of English for a token: the rule of thumb of OpenAI's tokenizer page. Other languages take more tokens.
CHARACTERS = 4
# Tokens of one answer to a probe: its form with a sentence of reasoning, as measured on the embedded model (65 to 91),
# with room for a model that writes more.
ANSWER = 160


class Estimate:
    """Counts the queries of inquiries instead of putting them, round by round, as far as they go unanswered.

    It stands where a Prober does. `calls` are exact for what asks in one round; `input_tokens` are characters through
    four, `output_tokens` 160 for each answer.
    """

    reason = "an estimate"
    ahead = 0

    def __init__(self) -> None:
        self.sessions = 0
        self.calls = 0
        self.input_tokens = 0
        self.output_tokens = 0

    def probe(self, session: Session) -> Future[tuple[Decision, ...]]:
        """Count what the open inquiries of a session would ask."""
        self.sessions += 1
        done: Future[tuple[Decision, ...]] = Future()
        done.set_result(session.drain_sync(self._count))
        return done

    def _count(self, query: Query) -> Reply | Failure:
        texts = [query.system, query.prompt, *(message.text for message in query.context or ())]
        self.calls += query.samples
        self.input_tokens += query.samples * -(-sum(map(len, texts)) // CHARACTERS)
        self.output_tokens += query.samples * ANSWER
        return Failure(detector="estimate", version="1", cause=Cause.NO_EVIDENCE, detail="nobody was asked")
