"""Each law of fusions catches a fusion that breaks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest
from msgspec import Struct

from theodolite.core.calibration import Band
from theodolite.core.event import Event
from theodolite.core.reading import Failure, Reading
from theodolite.core.window import Window
from theodolite.testing.checks.fusion import CHECKS, FusionFixture, check_fusion
from theodolite.testing.checks.law import name_of


class Most(Struct):
    score: float = 0.0


class Honest:
    """Says the highest score of a session: the fusion that every mutant here was once."""

    name = "honest"
    version = "1"
    bands: Mapping[str, Band] = {"honest.most": Band(alert=0.9, source="a test")}

    def begin(self) -> Most:
        return Most()

    def fuse(
        self, state: Most, event: Event, said: Sequence[Reading | Failure], window: Window
    ) -> tuple[Reading | Failure, ...]:
        del event, window
        state.score = max(state.score, *[self.heard(one) for one in said if isinstance(one, Reading)], 0.0)
        return (self.answer(state.score),) if said else ()

    def heard(self, reading: Reading) -> float:
        return reading.score

    def answer(self, score: float) -> Reading:
        return Reading(detector="honest", version="1", code="honest.most", score=score)


class Stranger(Honest):
    def answer(self, score: float) -> Reading:
        return Reading(detector="somebody", version="1", code="honest.most", score=score)


class Loud(Honest):
    bands: Mapping[str, Band] = {"honest.most": Band(alert=0.9)}


class Chatty(Honest):
    def fuse(
        self, state: Most, event: Event, said: Sequence[Reading | Failure], window: Window
    ) -> tuple[Reading | Failure, ...]:
        super().fuse(state, event, said, window)
        return (self.answer(state.score),)


class Contrary(Honest):
    def heard(self, reading: Reading) -> float:
        return 1.0 - reading.score


class Deaf(Honest):
    def answer(self, score: float) -> Reading:
        return super().answer(score / 2)


class Raising(Honest):
    def heard(self, reading: Reading) -> float:
        raise RuntimeError(reading.code)


class Shared(Honest):
    """Remembers outside of its state."""

    memory = Most()

    def begin(self) -> Most:
        return Most()

    def fuse(
        self, state: Most, event: Event, said: Sequence[Reading | Failure], window: Window
    ) -> tuple[Reading | Failure, ...]:
        del state
        return super().fuse(self.memory, event, said, window)


MUTANTS: list[tuple[Callable[[], Honest], str]] = [
    (Stranger, "own_name"),
    (Loud, "own_name"),
    (Chatty, "own_name"),
    (Shared, "saved"),
    (Raising, "saved"),
    (Contrary, "monotone"),
    (Deaf, "can_alarm"),
]


def fixture(factory: Callable[[], Honest]) -> FusionFixture[Most]:
    return FusionFixture(factory=factory, codes=["a.x", "b.x"])


def test_the_honest_one_obeys() -> None:
    check_fusion(Honest, codes=["a.x", "b.x"])


@pytest.mark.parametrize(("factory", "law"), MUTANTS)
def test_a_mutant_is_caught(factory: Callable[[], Honest], law: str) -> None:
    (check,) = (each for each in CHECKS if name_of(each) == law)
    with pytest.raises(AssertionError, match=f"breaks the law '{law}'"):
        check(fixture(factory))


def test_each_law_catches_one() -> None:
    assert {law for _, law in MUTANTS} == {name_of(check) for check in CHECKS}
