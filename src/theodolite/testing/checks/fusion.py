"""The laws of fusions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from theodolite.core.event import AnyEvent, ToolCallProposed, TurnEnded
from theodolite.core.fusion import Fusion
from theodolite.core.reading import Fact, Failure, Level, Reading
from theodolite.core.window import Window
from theodolite.testing.checks.law import broken, run, unraised

__all__ = ("CHECKS", "FusionFixture", "check_fusion")

S = TypeVar("S", bound=Struct)

_STEPS = 40
_SEEDS = range(5)
# What a float may lose in a sum.
_ROUNDING = 1e-9

_Answers = tuple[Reading | Failure, ...]


@dataclass(frozen=True, kw_only=True)
class FusionFixture(Generic[S]):
    """A fusion under test. `codes` are those that it hears; `facts` are numbers that each of them may state."""

    factory: Callable[[], Fusion[S]]
    codes: Sequence[str]
    facts: Mapping[str, float] = field(default_factory=dict[str, float])


def check_fusion(
    factory: Callable[[], Fusion[S]],
    *,
    codes: Sequence[str],
    facts: Mapping[str, float] | None = None,
    skips: Mapping[str, str] | None = None,
) -> None:
    """Run every law of fusions on what the factory makes.

    `skips` maps the name of a law to the reason why it cannot hold. Raises AssertionError for a broken law, ConfigError
    for a skip of an unknown law or without a reason.
    """
    run(CHECKS, FusionFixture(factory=factory, codes=codes, facts=facts or {}), skips or {})


def check_own_name(fixture: FusionFixture[S]) -> None:
    """Check that it speaks in its own name, under codes that have a band with a source, and says nothing of nothing."""
    fusion = fixture.factory()
    for code, band in fusion.bands.items():
        if not code.startswith(f"{fusion.name}.") or not band.source:
            raise broken("own_name", fusion, f"its band {code} is not its own or has no source", reproduce="read bands")
    for seed in _SEEDS:
        for answer in _played(fixture, seed):
            own = (answer.detector, answer.version) == (fusion.name, fusion.version)
            if not own or (isinstance(answer, Reading) and answer.code not in fusion.bands):
                raise broken("own_name", fusion, f"it said {answer}", reproduce=f"the answers of seed {seed}")
    if fusion.fuse(fusion.begin(), TurnEnded(seq=0), (), Window()):
        raise broken("own_name", fusion, "it answered to silence", reproduce="fuse a TurnEnded of which none spoke")


def check_saved(fixture: FusionFixture[S]) -> None:
    """Check that equal answers give equal answers, whether or not the state was saved and restored before each."""
    for seed in _SEEDS:
        with unraised("saved", fixture.factory(), reproduce=f"the answers of seed {seed}"):
            plain, again = list(_played(fixture, seed)), list(_played(fixture, seed, restoring=True))
        if plain != again:
            raise broken("saved", fixture.factory(), "a restored state answers otherwise", reproduce=f"seed {seed}")


def check_monotone(fixture: FusionFixture[S]) -> None:
    """Check that more alarm gives no lower score, and that an answer which is not there lowers none."""
    fusion = fixture.factory()
    for seed in _SEEDS:
        rng = Random(seed)  # noqa: S311 - a test, drawn alike each time
        for step in range(_STEPS):
            said = _said(fixture, rng)
            louder = tuple([replace(one, score=one.score + (1.0 - one.score) * rng.random()) for one in said])
            quieter = tuple([replace(one, score=0.0, facts=()) if rng.random() < 1 / 2 else one for one in said])
            for low, high in ((said, louder), (quieter, said)):
                before, after = _scores(fusion, low), _scores(fusion, high)
                if any(after.get(code, 0.0) < score - _ROUNDING for code, score in before.items()):
                    fault = f"{before} for {low}, {after} for {high}"
                    raise broken("monotone", fusion, fault, reproduce=f"step {step} of seed {seed}")


def check_can_alarm(fixture: FusionFixture[S]) -> None:
    """Check that each code can alarm with its default band."""
    fusion = fixture.factory()
    facts = tuple([Fact(name, value) for name, value in fixture.facts.items()])
    loudest = tuple([replace(one, score=1.0, facts=facts) for one in _all(fixture)])
    scores = _scores(fusion, loudest)
    for code, band in fusion.bands.items():
        if band.level(scores.get(code, 0.0)) is Level.CLEAR:
            raise broken("can_alarm", fusion, f"{code} cannot alarm", reproduce="let all codes score 1")


CHECKS = (check_own_name, check_saved, check_monotone, check_can_alarm)


def _call(seq: int) -> AnyEvent:
    return ToolCallProposed(tool="t", arguments={}, seq=seq)


def _all(fixture: FusionFixture[S]) -> Iterator[Reading]:
    for code in fixture.codes:
        yield Reading(detector=code.partition(".")[0], version="1", code=code, score=0.0)


def _said(fixture: FusionFixture[S], rng: Random) -> tuple[Reading, ...]:
    return tuple([replace(one, score=rng.random()) for one in _all(fixture)])


def _scores(fusion: Fusion[S], said: Sequence[Reading]) -> dict[str, float]:
    answers = fusion.fuse(fusion.begin(), _call(0), said, Window())
    return {answer.code: answer.score for answer in answers if isinstance(answer, Reading)}


def _played(fixture: FusionFixture[S], seed: int, *, restoring: bool = False) -> Iterator[Reading | Failure]:
    fusion, rng = fixture.factory(), Random(seed)  # noqa: S311 - as above
    state = fusion.begin()
    for seq in range(_STEPS):
        said = tuple([one for one in _said(fixture, rng) if rng.random() < 2 / 3])
        event = _call(seq) if rng.random() < 1 / 2 else TurnEnded(seq=seq)
        if restoring:
            state = msgspec.json.decode(msgspec.json.encode(state), type=type(state))
        yield from fusion.fuse(state, event, said, Window())
