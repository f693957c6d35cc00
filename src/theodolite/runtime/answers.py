"""What plug-ins answer is checked before it is believed, and their faults become values."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeGuard, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from theodolite.core.arguments import is_sequence
from theodolite.core.detector import AnyDetector, Asker
from theodolite.core.errors import ModelError, TheodoliteError
from theodolite.core.event import AnyEvent
from theodolite.core.fusion import AnyFusion
from theodolite.core.inquiry import Inquiry
from theodolite.core.reading import Cause, Fact, Failure, Reading
from theodolite.core.window import Window

__all__ = ("attempted", "failure_of", "first_of", "fuse", "hear", "marked", "proved", "signed", "told_as")

_T = TypeVar("_T")

_ENCODER = msgspec.json.Encoder()
_DECODER: msgspec.json.Decoder[Reading | Failure] = msgspec.json.Decoder(Reading | Failure)


def hear(
    detector: AnyDetector, state: Struct, event: AnyEvent, window: Window, askers: Mapping[str, Asker]
) -> list[Reading | Failure | Inquiry]:
    """Show an event to a detector and return what it answers. It does not raise.

    The first answer that is none, and whatever `update` raises, ends the answers with a Failure.
    """
    heard: list[Reading | Failure | Inquiry] = []

    def listen() -> None:
        for answer in _listed(detector.update(state, event, window), "update"):
            if isinstance(answer, Inquiry):
                heard.append(_opened(answer, detector, event, askers))
            else:
                heard.append(signed(answer, detector, "update"))

    fault = attempted(listen, detector.name, detector.version)
    return heard if fault is None else [*heard, fault]


def fuse(
    fusion: AnyFusion, state: Struct, event: AnyEvent, said: Sequence[Reading | Failure], window: Window
) -> list[Reading | Failure]:
    """Let a fusion hear what was said of an event and return what it answers. It does not raise, as `hear`."""
    heard: list[Reading | Failure] = []

    def listen() -> None:
        answers = _listed(fusion.fuse(state, event, tuple(said), window), "fuse")
        heard.extend(signed(answer, fusion, "fuse") for answer in answers)

    fault = attempted(listen, fusion.name, fusion.version)
    return heard if fault is None else [*heard, fault]


def attempted(work: Callable[[], _T], name: str, version: str) -> _T | Failure:
    """Return what the code of a plug-in returns, or the Failure that its exception stands for."""
    try:
        return work()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the boundary to all plug-ins but models; nobody leaves here
        return failure_of(error, name, version)


def proved(said: object) -> Reading | Failure:
    """Return an answer as a value of our own, in which every part is of its type.

    Raises TypeError or ValueError for what is no answer.
    """
    if not isinstance(said, Reading | Failure):
        raise TypeError(f"{type(said).__name__} is neither a Reading nor a Failure")
    return _DECODER.decode(_ENCODER.encode(said))


def failure_of(error: BaseException, detector: str, version: str) -> Failure:
    """Return the failure that an exception stands for; its text is redacted later like all else.

    Of a group of exceptions the first speaks.
    """
    error = first_of(error)
    # An exception is foreign too: `str` of it may raise in turn, which the traceback module takes care of.
    detail = "".join(traceback.format_exception_only(error)).strip()
    if isinstance(error, TheodoliteError):
        detail = detail.partition(": ")[2] or detail  # our own messages say all without the name of the class
    return Failure(detector=detector, version=version, cause=_cause(error), detail=detail)


def first_of(error: BaseException) -> BaseException:
    """Return the exception that speaks for a group, which is its first; an exception that is no group as it is.

    >>> first_of(BaseExceptionGroup("", [ExceptionGroup("", [ValueError("a")]), KeyError("b")]))
    ValueError('a')
    """
    while _is_group(error):
        error = error.exceptions[0]
    return error


def _is_group(error: BaseException) -> TypeGuard[BaseExceptionGroup[BaseException]]:
    return isinstance(error, BaseExceptionGroup)


def _cause(error: BaseException) -> Cause:
    if isinstance(error, ModelError):
        return error.cause
    if isinstance(error, TimeoutError):
        return Cause.TIMEOUT
    return Cause.MALFORMED if isinstance(error, TypeError | ValueError) else Cause.ERROR


def signed(answer: object, speaker: AnyDetector | AnyFusion | Asker, where: str) -> Reading | Failure:
    """Return an answer, proved, in its speaker's own name. Raises TypeError or ValueError for what is none."""
    said = proved(answer)
    if (said.detector, said.version) != (speaker.name, speaker.version):
        raise ValueError(f"{where} spoke in the name of {said.detector} {said.version}")
    return said


def marked(said: Reading | Failure, own: Collection[str], judges: Collection[str] = ()) -> Reading | Failure:
    """Return an answer, marked as a surrogate's where a model that it rests on is none of the session's `own`.

    `judges` only gave an opinion on what others had answered: they need not be the session's.
    """
    if isinstance(said, Failure) or all(model in own or model in judges for model in said.models):
        return said
    return replace(said, surrogate=True)


def told_as(said: Reading | Failure, words: Callable[[str], str]) -> Reading | Failure:
    """Return an answer with every text in it as `words` gives it."""
    if isinstance(said, Failure):
        return replace(said, detail=words(said.detail)) if said.detail else said
    evidence = [
        replace(item, path=words(item.path), expected=words(item.expected), observed=words(item.observed))
        for item in said.evidence
    ]
    facts = [Fact(fact.name, words(fact.value)) if isinstance(fact.value, str) else fact for fact in said.facts]
    return replace(said, evidence=tuple(evidence), facts=tuple(facts))


def _listed(answers: object, where: str) -> Sequence[object]:
    if not is_sequence(answers):
        raise TypeError(f"{where} gave {type(answers).__name__}, not a tuple of readings, failures and inquiries")
    return answers


def _opened(inquiry: Inquiry, detector: AnyDetector, event: AnyEvent, askers: Mapping[str, Asker]) -> Inquiry:
    asker = askers.get(detector.name)
    if asker is None:
        raise TypeError("update opened an inquiry, and the detector has no method `inquire`")
    if (inquiry.asker, inquiry.version) != (detector.name, detector.version):
        raise ValueError(f"update opened an inquiry in the name of {inquiry.asker} {inquiry.version}")
    if not 0 <= inquiry.about <= event.seq:
        raise ValueError(f"update opened an inquiry about event {inquiry.about}, which has not happened")
    if not isinstance(inquiry.subject, asker.subject):
        raise TypeError(f"update opened an inquiry about a {type(inquiry.subject).__name__}")
    return inquiry
