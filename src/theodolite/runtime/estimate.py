"""What probing sessions would take, without asking anybody."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from types import MappingProxyType

import msgspec
from msgspec import Raw, Struct

from theodolite.core.inquiry import Query, Reply, Role
from theodolite.core.policy import Decision
from theodolite.core.reading import Cause, Failure
from theodolite.runtime.session import Session

__all__ = ("Estimate", "Share")

# Characters of English for a token: the rule of thumb of OpenAI's tokenizer page. Other languages take more tokens.
CHARACTERS = 4
# Tokens of one answer to a probe: its form with a sentence of reasoning, as measured on the embedded model (65 to 91),
# with room for a model that writes more.
ANSWER = 160
# Tokens of an answer to a choice, which is the letter of an option: one or two.
LETTER = 2


class Share(Struct, frozen=True):
    """What some queries would take; shares add up.

    >>> Share(1, 10, 160) + Share(1, 5, 160)
    Share(calls=2, input_tokens=15, output_tokens=320)
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @classmethod
    def of(cls, query: Query) -> Share:
        """Return what one query would take. To a choice a model answers with a letter."""
        tokens, answer = -(-sum(map(len, _texts(query))) // CHARACTERS), LETTER if query.options else ANSWER
        return cls(query.samples, query.samples * tokens, query.samples * answer)

    def __add__(self, other: Share) -> Share:
        return Share(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )


class Estimate:
    """Counts the queries of inquiries instead of putting them, round by round, as far as they go unanswered.

    It stands where a Prober does. What each role is asked is counted by itself, since roles may be played by different
    models. `calls` are exactly those of the first round of each inquiry; `input_tokens` are the characters of all that
    is sent, through four, `output_tokens` 160 for each answer.
    """

    reason = "an estimate"
    ahead = 0

    def __init__(self, *, probes: int = 1) -> None:
        self.sessions = 0
        self.probes = probes
        self._shares: defaultdict[Role, Share] = defaultdict(Share)

    @property
    def shares(self) -> Mapping[Role, Share]:
        """What each role that is asked would take."""
        return MappingProxyType(self._shares)

    def probe(self, session: Session) -> Future[tuple[Decision, ...]]:
        """Count what the open inquiries of a session would ask."""
        self.sessions += 1
        done: Future[tuple[Decision, ...]] = Future()
        done.set_result(session.drain_sync(self._count))
        return done

    def _count(self, query: Query) -> Reply | Failure:
        self._shares[query.role] += Share.of(query)
        return Failure(detector="estimate", version="1", cause=Cause.NO_EVIDENCE, detail="nobody was asked")


def _texts(query: Query) -> Iterator[str | bytes]:
    """Yield all that is sent with a query: tools and the form of the answer too, as JSON."""
    yield from (query.system, query.prompt)
    yield from (message.text for message in query.context or ())
    if query.tools:
        yield msgspec.json.encode(query.tools)
    if isinstance(query.schema, Raw):
        yield bytes(query.schema)
