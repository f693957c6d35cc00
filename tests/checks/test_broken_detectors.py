"""Each law of detectors catches a detector that breaks it."""

from __future__ import annotations

import itertools
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest
from msgspec import UNSET, Struct

from theodolite.core.calibration import Band
from theodolite.core.detector import Answer, Detector, Feature
from theodolite.core.event import Event, MessageObserved, ToolCallProposed, TurnEnded
from theodolite.core.inquiry import Dialogue, Inquiry
from theodolite.core.reading import Evidence, Reading
from theodolite.core.window import Window
from theodolite.testing.checks.detector import CHECKS, DetectorCheck, DetectorFixture, check_detector
from theodolite.testing.checks.dialogue import by_role
from theodolite.testing.checks.law import name_of
from theodolite.testing.fakes import AskingDetector, NonsenseDetector, Question, RaisingDetector, Tally

S = TypeVar("S", bound=Struct)


class Sent(Struct, kw_only=True):
    calls: int = 0
    tools: list[str] = []
    last: Reading | None = None
    loose: object = None


class Honest:
    """Says 1 for a tool that sends, 0 for another: the detector that every mutant here was once."""

    name = "honest"
    version = "1"
    reads: frozenset[type[Event]] = frozenset({ToolCallProposed, MessageObserved})
    needs = frozenset({Feature.INTENT})
    bands: Mapping[str, Band] = {"honest.sends": Band(alert=0.5, source="an example")}

    def begin(self) -> Sent:
        return Sent()

    def update(self, state: Sent, event: Event, window: Window) -> Answer:
        del window
        if not isinstance(event, ToolCallProposed):
            return ()
        state.calls += 1
        state.tools = [*state.tools[-7:], event.tool]
        return (self.reading(event, 1.0 if event.tool.startswith("send") else 0.0),)

    def reading(self, event: Event, score: float, code: str = "honest.sends", ahead: int = 0) -> Reading:
        evidence = (Evidence(kind="honest.call", seqs=(event.seq + ahead,)),)
        return Reading(detector=self.name, version=self.version, code=code, score=score, evidence=evidence)


class Misnamed(Honest):
    name = "Honest Abe"


class Unfounded(Honest):
    bands: Mapping[str, Band] = {"honest.sends": Band(alert=0.5)}


class ReadsStrings(Honest):
    reads = frozenset({"ToolCallProposed"})  # type: ignore[arg-type]  # pyright: ignore[reportAssignmentType] - its fault


class Listing(Honest):
    def update(self, state: Sent, event: Event, window: Window) -> Answer:
        return list(super().update(state, event, window))  # type: ignore[return-value]  # pyright: ignore[reportReturnType] - its fault


class Forging(Honest):
    def update(self, state: Sent, event: Event, window: Window) -> Answer:
        said = super().update(state, event, window)
        return tuple(msgspec.structs.replace(item, detector="margin") for item in said if isinstance(item, Reading))


class Uncoded(Honest):
    def update(self, state: Sent, event: Event, window: Window) -> Answer:
        return (*super().update(state, event, window), self.reading(event, 0.0, code="honest.secret"))


class Foreseeing(Honest):
    def update(self, state: Sent, event: Event, window: Window) -> Answer:
        return (self.reading(event, 0.0, ahead=1),) if super().update(state, event, window) else ()


class Counting(Honest):
    calls = itertools.count()

    def update(self, state: Sent, event: Event, window: Window) -> Answer:
        del state, window
        return (self.reading(event, next(self.calls) % 7 / 7),) if isinstance(event, ToolCallProposed) else ()


class Revising(Honest):
    """Makes the score of its last reading what the present one's is."""

    def update(self, state: Sent, event: Event, window: Window) -> Answer:
        said = super().update(state, event, window)
        for item in said:
            if isinstance(item, Reading):
                if state.last is not None:
                    msgspec.structs.force_setattr(state.last, "score", item.score)
                state.last = item
        return said


class Meddling(Honest):
    def update(self, state: Sent, event: Event, window: Window) -> Answer:
        msgspec.structs.force_setattr(event, "channel", "unknown")
        return super().update(state, event, window)


class Emptying(Honest):
    def update(self, state: Sent, event: Event, window: Window) -> Answer:
        del window.events[:-1]
        return super().update(state, event, window)


class Overhearing(Honest):
    reads: frozenset[type[Event]] = frozenset({ToolCallProposed})

    def update(self, state: Sent, event: Event, window: Window) -> Answer:
        state.calls += isinstance(event, TurnEnded)
        return super().update(state, event, window)


class Trusting(Honest):
    """Takes it that every message has a text."""

    def update(self, state: Sent, event: Event, window: Window) -> Answer:
        if isinstance(event, MessageObserved):
            state.calls += len(event.text)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - its fault
        return super().update(state, event, window)


class Forgetful(Honest):
    """Keeps a tuple where JSON gives back a list."""

    def update(self, state: Sent, event: Event, window: Window) -> Answer:
        state.loose = (event.seq,)
        return super().update(state, event, window)


class Unsavable(Honest):
    def update(self, state: Sent, event: Event, window: Window) -> Answer:
        state.loose = object
        return super().update(state, event, window)


class Gossiping(Honest):
    def __init__(self) -> None:
        self.tools: list[str] = []

    def update(self, state: Sent, event: Event, window: Window) -> Answer:
        del state, window
        if not isinstance(event, ToolCallProposed):
            return ()
        self.tools.append(event.tool)
        return (self.reading(event, 1.0 / len(self.tools)),)


class Remembering(Honest):
    """Keeps a cache that changes no answer."""

    def __init__(self) -> None:
        self.cache: dict[int, bool] = {}

    def update(self, state: Sent, event: Event, window: Window) -> Answer:
        self.cache[event.seq] = True
        return super().update(state, event, window)


@lru_cache
def _word_list() -> str:
    return Path(__file__).with_name("words.txt").read_text()


class LooksUp(Honest):
    """Reads a file, once in the life of the process."""

    def update(self, state: Sent, event: Event, window: Window) -> Answer:
        _word_list()
        return super().update(state, event, window)


class PhonesHome(Honest):
    """Tries to reach a host, and hides that it could not."""

    def update(self, state: Sent, event: Event, window: Window) -> Answer:
        with suppress(OSError), socket.create_connection(("127.0.0.1", 9), timeout=0.01):
            pass
        return super().update(state, event, window)


class Delegates(Honest):
    def update(self, state: Sent, event: Event, window: Window) -> Answer:
        with suppress(OSError):
            subprocess.run([sys.executable, "-c", ""], check=False)
        return super().update(state, event, window)


class Hoarding(Honest):
    def update(self, state: Sent, event: Event, window: Window) -> Answer:
        if isinstance(event, ToolCallProposed):
            state.tools.append(event.tool)
        return super().update(Sent(), event, window)


class HoardingInATurn(Honest):
    """Trusts that every turn ends."""

    reads: frozenset[type[Event]] = frozenset({ToolCallProposed, TurnEnded})

    def update(self, state: Sent, event: Event, window: Window) -> Answer:
        if isinstance(event, TurnEnded):
            state.tools.clear()
        elif isinstance(event, ToolCallProposed):
            state.tools.append(event.tool)
        return super().update(Sent(), event, window)


class Rescanning(Honest):
    def update(self, state: Sent, event: Event, window: Window) -> Answer:
        if isinstance(event, ToolCallProposed):
            state.tools.append(event.tool)
            state.calls = sum(tool.startswith(verb) for tool in state.tools for verb in ("send", "pay", "delete"))
        return super().update(Sent(), event, window)


class Quadratic(Honest):
    def update(self, state: Sent, event: Event, window: Window) -> Answer:
        if isinstance(event, MessageObserved) and event.text is not UNSET:
            text = str(event.text)
            state.calls = sum(text.count(letter) for letter in text) % 2
        return super().update(state, event, window)


class Speechless(Honest):
    """Opens inquiries that nobody can hold."""

    def update(self, state: Sent, event: Event, window: Window) -> Answer:
        del state, window
        subject = Question(prompt="?", seq=event.seq)
        return (Inquiry(asker=self.name, version=self.version, about=event.seq, subject=subject),)


class AsksAmiss(Speechless):
    """Holds dialogues about something else than its inquiries are about."""

    subject = Tally

    def inquire(self, subject: Struct) -> Dialogue:
        raise NotImplementedError


class Mute(Honest):
    bands: Mapping[str, Band] = {"honest.sends": Band(alert=0.5, source="an example")}

    def reading(self, event: Event, score: float, code: str = "honest.sends", ahead: int = 0) -> Reading:
        return super().reading(event, score * 0.4, code, ahead)


Mutant = Callable[[DetectorCheck], None]


def _on(factory: Callable[[], Detector[S]]) -> Mutant:
    return lambda check: check(DetectorFixture(factory=factory))


MUTANTS: dict[str, dict[str, Mutant]] = {
    "well_formed": {
        "misnamed": _on(Misnamed),
        "no source": _on(Unfounded),
        "reads strings": _on(ReadsStrings),
    },
    "total": {"trusts in a text": _on(Trusting), "always raises": _on(RaisingDetector)},
    "signed": {"a list": _on(Listing), "another's name": _on(Forging), "None": _on(NonsenseDetector)},
    "coded": {"no band": _on(Uncoded)},
    "evidence": {"the next event": _on(Foreseeing)},
    "deterministic": {"counts calls of all sessions": _on(Counting)},
    "prefix": {"changes an old reading": _on(Revising)},
    "reads_only": {"changes the event": _on(Meddling), "empties the window": _on(Emptying)},
    "deaf_elsewhere": {"remembers what it does not read": _on(Overhearing)},
    "restorable": {"a tuple becomes a list": _on(Forgetful), "cannot be encoded": _on(Unsavable)},
    "sessions_apart": {"keeps calls in itself": _on(Gossiping)},
    "immutable": {"keeps a cache in itself": _on(Remembering)},
    "no_io": {
        "reads a file once": _on(LooksUp),
        "hides that it phones home": _on(PhonesHome),
        "starts a process": _on(Delegates),
    },
    "bounded": {"keeps every tool": _on(Hoarding), "keeps every tool of a turn": _on(HoardingInATurn)},
    "constant_cost": {"scans the past": _on(Rescanning)},
    "linear": {"counts each letter": _on(Quadratic)},
    "inquiries": {"cannot ask": _on(Speechless), "asks about something else": _on(AsksAmiss)},
    "can_alarm": {"never gets there": _on(Mute)},
}
CASES = [(law, how) for law, mutants in MUTANTS.items() for how in mutants]


@pytest.mark.parametrize(("law", "how"), CASES, ids=[f"{law}: {how}" for law, how in CASES])
def test_a_law_catches_who_breaks_it(law: str, how: str) -> None:
    (check,) = [check for check in CHECKS if name_of(check) == law]
    with pytest.raises(AssertionError, match=f"breaks the law '{law}'.*To see it again: "):
        MUTANTS[law][how](check)


def test_no_law_is_without_its_mutant() -> None:
    assert list(MUTANTS) == [name_of(check) for check in CHECKS]


def test_who_breaks_nothing_passes() -> None:
    check_detector(Honest)
    check_detector(AskingDetector, answers=[by_role(1)])


def test_a_session_given_for_a_code_is_the_one_that_counts() -> None:
    def quiet() -> tuple[TurnEnded]:
        return (TurnEnded(),)

    with pytest.raises(AssertionError, match="can_alarm"):
        check_detector(Honest, alarming={"honest.sends": quiet})
