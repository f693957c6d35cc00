"""The pure road of one inquiry: its dialogue, the grading, and a second opinion where that is ambiguous."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TypeGuard

from theodolite.core.arguments import is_sequence
from theodolite.core.detector import Asker
from theodolite.core.event import InquirySettled
from theodolite.core.inquiry import Dialogue, Exchange, Inquiry, Query, Reply
from theodolite.core.reading import Cause, Failure, Reading, Signal
from theodolite.core.verifier import Case, Verifier
from theodolite.core.window import Window

__all__ = ("Consultation", "consult", "failure_of")

Consultation = Generator[tuple[Query, ...], tuple[Reply | Failure, ...], InquirySettled]
"""Yields queries, is sent answers, returns how the inquiry was settled. It does not raise."""


def consult(
    asker: Asker,
    inquiry: Inquiry,
    *,
    grade: Callable[[Reading | Failure], Signal],
    verifiers: Sequence[Verifier] = (),
    window: Window | None = None,
) -> Consultation:
    """Return the road of one inquiry, to be driven. Making it calls nothing.

    What the asker says is graded; the first ambiguous reading that a verifier may settle goes to that verifier, whose
    answer takes its place. A second opinion that fails takes nothing away: the reading stays, the failure is added.
    """
    log: list[Exchange] = []
    said = yield from _guarded(asker, inquiry, log)
    first: Reading | None = None
    for place, reading in enumerate(said):
        verifier = _verifier(reading, grade, verifiers)
        if isinstance(reading, Reading) and verifier is not None:
            first = reading
            events = () if window is None else tuple(window.recent())
            case = Case(signal=grade(reading), exchanges=tuple(log), events=events)
            opened = Inquiry(asker=verifier.name, version=verifier.version, about=inquiry.about, subject=case)
            second = yield from _guarded(verifier, opened, log)
            kept = (reading,) if any(isinstance(answer, Failure) for answer in second) else ()
            said = (*said[:place], *kept, *second, *said[place + 1 :])
            break
    return InquirySettled(
        asker=inquiry.asker,
        about=inquiry.about,
        said=said,
        first=first,
        exchanges=sum(isinstance(exchange.reply, Reply) for exchange in log),
        canaries=tuple(sorted({exchange.query.canary for exchange in log} - {""})),
    )


def _verifier(
    said: Reading | Failure, grade: Callable[[Reading | Failure], Signal], verifiers: Sequence[Verifier]
) -> Verifier | None:
    if isinstance(said, Failure):
        return None
    able = [verifier for verifier in verifiers if said.code in verifier.codes]
    return able[0] if able and grade(said).ambiguous else None


def _guarded(
    asker: Asker, inquiry: Inquiry, log: list[Exchange]
) -> Generator[tuple[Query, ...], tuple[Reply | Failure, ...], tuple[Reading | Failure, ...]]:
    """Drive a dialogue through, keeping what was said; a fault of the asker becomes a Failure."""
    try:
        said = yield from _tapped(asker.inquire(inquiry.subject), log)
    except Exception as error:  # noqa: BLE001 - the boundary to plug-ins: their fault becomes a value
        return (failure_of(error, asker.name, asker.version),)
    if _is_sound(said):
        return said
    detail = "a dialogue must return a tuple of readings and failures, at least one"
    return (Failure(detector=asker.name, version=asker.version, cause=Cause.MALFORMED, detail=detail),)


def _is_sound(said: object) -> TypeGuard[tuple[Reading | Failure, ...]]:
    return is_sequence(said) and len(said) > 0 and all(isinstance(answer, Reading | Failure) for answer in said)


def _tapped(dialogue: Dialogue, log: list[Exchange]) -> Dialogue:
    try:
        queries = next(dialogue)
        while True:
            answers = yield queries
            log.extend(map(Exchange, queries, answers))
            queries = dialogue.send(answers)
    except StopIteration as stop:
        said: tuple[Reading | Failure, ...] = stop.value
        return said
    finally:
        dialogue.close()


def failure_of(error: BaseException, detector: str, version: str) -> Failure:
    """Return the failure that an exception stands for; its text is redacted later like all else."""
    cause = Cause.MALFORMED if isinstance(error, TypeError | ValueError) else Cause.ERROR
    return Failure(detector=detector, version=version, cause=cause, detail=f"{type(error).__name__}: {error}")
