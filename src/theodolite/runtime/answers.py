"""What plug-ins answer is checked before it is believed, and their faults become values."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct

from theodolite.core.arguments import is_sequence
from theodolite.core.detector import AnyDetector, Asker
from theodolite.core.event import AnyEvent
from theodolite.core.inquiry import Inquiry
from theodolite.core.reading import Cause, Failure, Reading
from theodolite.core.window import Window

__all__ = ("attempted", "failure_of", "hear", "proved")

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
        for answer in _listed(detector.update(state, event, window)):
            if isinstance(answer, Inquiry):
                heard.append(_opened(answer, detector, event, askers))
            else:
                heard.append(_signed(proved(answer), detector))

    fault = attempted(listen, detector.name, detector.version)
    return heard if fault is None else [*heard, fault]


def attempted(work: Callable[[], _T], name: str, version: str) -> _T | Failure:
    """Return what the code of a plug-in returns, or the Failure that its exception stands for."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - the boundary to detectors, verifiers and dialogues
        return failure_of(error, name, version)


def proved(said: object) -> Reading | Failure:
    """Return an answer as a value of our own, in which every part is of its type.

    Raises TypeError or ValueError for what is no answer.
    """
    if not isinstance(said, Reading | Failure):
        raise TypeError(f"{type(said).__name__} is neither a Reading nor a Failure")
    return _DECODER.decode(_ENCODER.encode(said))


def failure_of(error: BaseException, detector: str, version: str) -> Failure:
    """Return the failure that an exception stands for; its text is redacted later like all else."""
    cause = Cause.MALFORMED if isinstance(error, TypeError | ValueError) else Cause.ERROR
    # An exception is foreign too: `str` of it may raise in turn, which the traceback module takes care of.
    detail = "".join(traceback.format_exception_only(error)).strip()
    return Failure(detector=detector, version=version, cause=cause, detail=detail)


def _listed(answers: object) -> Sequence[object]:
    if not is_sequence(answers):
        raise TypeError(f"update gave {type(answers).__name__}, not a tuple of readings, failures and inquiries")
    return answers


def _signed(said: Reading | Failure, detector: AnyDetector) -> Reading | Failure:
    if (said.detector, said.version) != (detector.name, detector.version):
        raise ValueError(f"update spoke in the name of {said.detector} {said.version}")
    return said


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
