"""The pure road of one inquiry: its dialogue, the grading, and a second opinion where that is ambiguous."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple, TypeGuard

from msgspec import UNSET
from msgspec.structs import replace

from theodolite.core.arguments import is_sequence
from theodolite.core.detector import Asker, tallies
from theodolite.core.event import InquirySettled, ModelUsage
from theodolite.core.inquiry import Dialogue, Exchange, Inquiry, Message, Query, Reply, Role, Usage
from theodolite.core.reading import Cause, Failure, Reading, Signal
from theodolite.core.redaction import DenyAll
from theodolite.core.verifier import Case, Verifier
from theodolite.core.window import Window
from theodolite.runtime.answers import attempted, marked, signed, told_as
from theodolite.runtime.reuse import Reuse

__all__ = ("Consultation", "Desk", "consult")

# A dialogue that asks more often than this will not end: the largest inquiry in the design, a probe with its twin in
# all rotations of five options, needs about ten rounds.
ROUNDS = 100


_GONE = str(DenyAll().text("x"))


class Desk(NamedTuple):
    """What stands between an asker and the models: a redactor for what goes to a judge, and answers that are known.

    `scrub` redacts a text, uncut, and `conceal` takes the operator's own texts and these canaries out of one: nobody
    asks without them. `plays` names the model of each role, without which nothing is known.
    """

    scrub: Callable[[str], str]
    conceal: Callable[[str, tuple[str, ...]], str]
    reuse: Reuse | None = None
    plays: Mapping[Role, str] = MappingProxyType({})

    def concealed(self, said: Reading | Failure, log: Sequence[Exchange]) -> Reading | Failure:
        """Return an answer without what was planted in its questions, and what may not be told to anybody.

        It is graded, shown to verifiers and recorded before Session redacts it, and cut to a quotation more than once:
        of what is cut in two, nobody knows what it was.
        """
        canaries = _canaries(log)
        return told_as(said, lambda text: self.conceal(text, canaries))

    def scrubbed(self, query: Query) -> Query:
        """Return a query as it may be put: a judge, who may be anybody, is shown no text that is not redacted."""
        if query.role is not Role.JUDGE or not query.context:
            return query
        return replace(query, context=tuple([Message(item.role, self.scrub(item.text)) for item in query.context]))

    def answered(
        self, queries: tuple[Query, ...], asker: Asker
    ) -> Generator[tuple[Query, ...], tuple[Reply | Failure, ...], tuple[Reply | Failure, ...]]:
        """Yield the queries that somebody must be asked, if any; return the answers to all, in their order."""
        known = [self._known(query) or _unasked(query) for query in queries]
        asked = tuple([query for query, reply in zip(queries, known, strict=True) if reply is None])
        told = iter((yield asked) if asked else ())
        answers = tuple([next(told) if reply is None else reply for reply in known])
        for reply in answers:
            if self.reuse is not None and isinstance(reply, Reply) and reply.query.role in self.plays:
                tally = asker.tally if tallies(asker) else None
                self.reuse.learn(reply, self.plays[reply.query.role], tally)
        return answers

    def _known(self, query: Query) -> Reply | None:
        model = self.plays.get(query.role)
        return None if self.reuse is None or model is None else self.reuse.known(query, model)


def _unasked(query: Query) -> Failure | None:
    """Return why a judge is not asked: a redactor that lets nothing pass leaves nothing to judge."""
    shown = query.context or ()
    if query.role is not Role.JUDGE or not shown or any(message.text != _GONE for message in shown):
        return None
    detail = "the redactor leaves nothing of the answers that a judge could look at: configure one that scrubs"
    return Failure(detector="judge", version="1", cause=Cause.NO_EVIDENCE, detail=detail)


Consultation = Generator[tuple[Query, ...], tuple[Reply | Failure, ...], InquirySettled]
"""Yields queries, is sent answers, returns how the inquiry was settled. It does not raise."""


def consult(
    asker: Asker,
    inquiry: Inquiry,
    *,
    grade: Callable[[Reading | Failure], Signal],
    desk: Desk,
    verifiers: Sequence[Verifier] = (),
    window: Window | None = None,
    models: Collection[str] = (),
    ambiguous: Callable[[Reading], bool] | None = None,
) -> Consultation:
    """Return the road of one inquiry, to be driven. Making it calls nothing.

    What the asker says is graded; the first ambiguous reading that a verifier may settle goes to that verifier, whose
    answer takes its place. A second opinion that fails takes nothing away: the reading stays, the failure is added.
    A reading that rests on another model than `models`, the session's own, is marked as a surrogate's; judges may be
    any. What `desk` knows is not asked again. `ambiguous` says it of a reading where that is cheaper than to grade it.
    """
    log: list[Exchange] = []
    said = yield from _guarded(asker, inquiry, log, models, desk)
    first = _looked_at(inquiry)
    for place, reading in enumerate(said):
        verifier = _verifier(reading, ambiguous or (lambda one: grade(one).ambiguous), verifiers)
        if isinstance(reading, Reading) and verifier is not None:
            first = reading
            events, intents = ((), ()) if window is None else (tuple(window.recent()), window.intents)
            case = Case(signal=grade(reading), exchanges=tuple(log), events=events, intents=intents)
            opened = Inquiry(asker=verifier.name, version=verifier.version, about=inquiry.about, subject=case)
            second = yield from _guarded(verifier, opened, log, models, desk)
            kept = (reading,) if any(isinstance(answer, Failure) for answer in second) else ()
            said = (*said[:place], *kept, *second, *said[place + 1 :])
            break
    asked = [reply for reply in _replies(log) if not reply.reused]
    return InquirySettled(
        asker=inquiry.asker,
        about=inquiry.about,
        said=said,
        first=first,
        exchanges=len(asked),
        reused=len(_replies(log)) - len(asked),
        canaries=_canaries(log),
        usage=_usage(asked),
    )


def _canaries(log: Iterable[Exchange]) -> tuple[str, ...]:
    return tuple(sorted({exchange.query.canary for exchange in log} - {""}))


def _looked_at(inquiry: Inquiry) -> Reading | None:
    """Return the reading that an inquiry of a verifier's own is about."""
    said = inquiry.subject.signal.said if isinstance(inquiry.subject, Case) else None
    return said if isinstance(said, Reading) else None


def _replies(log: Iterable[Exchange]) -> list[Reply]:
    return [exchange.reply for exchange in log if isinstance(exchange.reply, Reply)]


def _usage(replies: Iterable[Reply]) -> tuple[ModelUsage, ...]:
    used: dict[str, list[Usage]] = {}
    for reply in replies:
        used.setdefault(reply.model, []).append(reply.usage)
    return tuple([_used(model, used[model]) for model in sorted(used)])


def _used(model: str, usages: Sequence[Usage]) -> ModelUsage:
    costs = [usage.cost for usage in usages if usage.cost is not UNSET]
    return ModelUsage(
        model=model,
        queries=len(usages),
        input_tokens=sum(usage.input_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        cost=math.fsum(costs) if len(costs) == len(usages) else UNSET,
    )


def _verifier(
    said: Reading | Failure, ambiguous: Callable[[Reading], bool], verifiers: Sequence[Verifier]
) -> Verifier | None:
    if isinstance(said, Failure):
        return None
    able = [verifier for verifier in verifiers if said.code in verifier.codes]
    return able[0] if able and ambiguous(said) else None


def _guarded(
    asker: Asker, inquiry: Inquiry, log: list[Exchange], models: Collection[str], desk: Desk
) -> Generator[tuple[Query, ...], tuple[Reply | Failure, ...], tuple[Reading | Failure, ...]]:
    """Drive a dialogue through, keeping what was said; a fault of the asker becomes a Failure."""
    dialogue = attempted(lambda: _made(asker.inquire(inquiry.subject)), asker.name, asker.version)
    if isinstance(dialogue, Failure):
        return (dialogue,)
    answers: tuple[Reply | Failure, ...] | None = None
    try:
        for _ in range(ROUNDS):
            step = attempted(partial(_step, dialogue, answers, asker, log), asker.name, asker.version)
            if isinstance(step, Failure):
                return (step,)
            if step.said:
                said = [desk.concealed(answer, log) for answer in step.said]
                return tuple([marked(answer, models, _judges(log)) for answer in said])
            answers = yield from desk.answered(tuple(map(desk.scrubbed, step.queries)), asker)
            log.extend(map(Exchange, step.queries, answers))
    finally:
        attempted(dialogue.close, asker.name, asker.version)
    detail = f"the dialogue still asks after {ROUNDS} rounds"
    return (Failure(detector=asker.name, version=asker.version, cause=Cause.MALFORMED, detail=detail),)


class _Step(NamedTuple):
    """One step of a dialogue: it asks, or it has come to its end and says."""

    queries: tuple[Query, ...] = ()
    said: tuple[Reading | Failure, ...] = ()


def _step(
    dialogue: Dialogue, answers: tuple[Reply | Failure, ...] | None, asker: Asker, log: Iterable[Exchange]
) -> _Step:
    try:
        asked = next(dialogue) if answers is None else dialogue.send(answers)
    except StopIteration as stop:
        return _Step(said=_said(stop.value, asker, {reply.model for reply in _replies(log)}))
    return _Step(queries=_asked(asked))


def _made(dialogue: object) -> Dialogue:
    if not _is_dialogue(dialogue):
        raise TypeError(f"inquire gave {type(dialogue).__name__}, not a dialogue")
    return dialogue


def _is_dialogue(value: object) -> TypeGuard[Dialogue]:
    return isinstance(value, Generator)


def _judges(log: Iterable[Exchange]) -> set[str]:
    """Return the models that were asked as judges, and as nothing else."""
    replies = _replies(log)
    arms = {reply.model for reply in replies if reply.query.role is not Role.JUDGE}
    return {reply.model for reply in replies} - arms


def _said(said: object, asker: Asker, replied: Collection[str]) -> tuple[Reading | Failure, ...]:
    if not is_sequence(said) or not said:
        raise TypeError("a dialogue must return a tuple of readings and failures, at least one")
    answers = tuple([signed(answer, asker, "the dialogue") for answer in said])
    silent = {model for answer in answers if isinstance(answer, Reading) for model in answer.models} - set(replied)
    if silent:
        raise ValueError(f"the dialogue named the model {min(silent)}, which gave no answer")
    return answers


def _asked(queries: object) -> tuple[Query, ...]:
    if not is_sequence(queries):
        raise TypeError(f"the dialogue asked {type(queries).__name__}, not a tuple of queries")
    asked = tuple([query for query in queries if isinstance(query, Query)])
    if not asked or len(asked) < len(queries):
        raise TypeError("the dialogue asked something else than queries, at least one")
    return asked
