"""Each law of askers catches an asker that breaks it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace

from theodolite.core.calibration import Band
from theodolite.core.detector import Asker
from theodolite.core.inquiry import Dialogue, Query, Reply, Role
from theodolite.core.reading import Cause, Failure, Reading, Signal
from theodolite.core.verifier import Case
from theodolite.testing.checks.asker import CHECKS, AskerFixture, check_asker
from theodolite.testing.checks.law import name_of
from theodolite.testing.fakes import Question, ScriptedVerifier

BANDS = {"honest.differs": Band(alert=0.5, source="an example")}


class Loose(Struct, frozen=True):
    prompt: object


class Honest:
    """Asks both sides once, says whether they differ: the asker that every mutant here was once."""

    name = "honest"
    version = "1"
    subject: type[Struct] = Question
    bands: Mapping[str, Band] = BANDS

    def inquire(self, subject: Struct) -> Dialogue:
        answers = yield self.queries(subject)
        failed = [answer for answer in answers if isinstance(answer, Failure)]
        if failed:
            return (self.failure(failed[0].cause),)
        texts = [tuple([draw.text for draw in reply.draws]) for reply in answers if isinstance(reply, Reply)]
        return (self.reading(1.0 if texts[0] != texts[1] else 0.0),)

    def queries(self, subject: Struct) -> tuple[Query, ...]:
        prompt = str(getattr(subject, "prompt", ""))
        return tuple([Query(role=role, prompt=prompt, options=("yes", "no")) for role in (Role.SUBJECT, Role.SHADOW)])

    def failure(self, cause: Cause) -> Failure:
        return Failure(detector=self.name, version=self.version, cause=cause)

    def reading(self, score: float, code: str = "honest.differs") -> Reading:
        return Reading(detector=self.name, version=self.version, code=code, score=score)


AsksAboutStrings = type("AsksAboutStrings", (Honest,), {"subject": str})


class Eager(Honest):
    """Begins before it is driven."""

    def inquire(self, subject: Struct) -> Dialogue:
        dialogue = super().inquire(subject)
        next(dialogue)
        return dialogue


class Looking(Honest):
    def inquire(self, subject: Struct) -> Dialogue:
        with suppress(OSError):
            Path(__file__).with_name("words.txt").read_text()
        return (yield from super().inquire(subject))


class Knowing(Honest):
    """Answers without a question."""

    def inquire(self, subject: Struct) -> Dialogue:
        if len(str(subject)) < 0:
            yield ()
        return (self.reading(0.0),)


class Endless(Honest):
    def inquire(self, subject: Struct) -> Dialogue:
        while True:
            yield self.queries(subject)


class AsksNothing(Honest):
    def inquire(self, subject: Struct) -> Dialogue:
        yield ()
        return (yield from super().inquire(subject))


class Silent(Honest):
    def inquire(self, subject: Struct) -> Dialogue:
        yield from super().inquire(subject)
        return ()


class Uncoded(Honest):
    def reading(self, score: float, code: str = "honest.secret") -> Reading:
        return super().reading(score, code)


class Forging(Honest):
    def reading(self, score: float, code: str = "honest.differs") -> Reading:
        return replace(super().reading(score, code), version="2")


class Hopeful(Honest):
    """Has no answer to a failure."""

    def failure(self, cause: Cause) -> Failure:
        raise RuntimeError(f"a query failed: {cause}")


class Counting(Honest):
    """Takes it that every reply has a draw."""

    def inquire(self, subject: Struct) -> Dialogue:
        answers = yield self.queries(subject)
        failed = [answer for answer in answers if isinstance(answer, Failure)]
        if failed:
            return (self.failure(failed[0].cause),)
        said = [reply.draws[0].text for reply in answers if isinstance(reply, Reply)]
        return (self.reading(1.0 if said[0] != said[1] else 0.0),)


class Suspicious(Honest):
    """Takes any "yes" for drift, whoever says it."""

    def inquire(self, subject: Struct) -> Dialogue:
        answers = yield self.queries(subject)
        if any(isinstance(answer, Failure) for answer in answers):
            return (self.failure(Cause.ERROR),)
        yes = [reply for reply in answers if isinstance(reply, Reply) and any(d.text == "yes" for d in reply.draws)]
        return (self.reading(len(yes) / 2),)


class Unfair(Honest):
    """Tells the shadow to be careful."""

    def queries(self, subject: Struct) -> tuple[Query, ...]:
        mine, other = super().queries(subject)
        return mine, replace(other, system="Be careful.")


class Rotating(Honest):
    """Asks with a number that goes on counting."""

    numbers = itertools.count()

    def queries(self, subject: Struct) -> tuple[Query, ...]:
        number = next(self.numbers)
        return tuple([replace(query, prompt=f"{query.prompt} ({number})") for query in super().queries(subject)])


class Clinging(Honest):
    """Asks on when it is given up."""

    def inquire(self, subject: Struct) -> Dialogue:
        try:
            return (yield from super().inquire(subject))
        except GeneratorExit:
            yield self.queries(subject)
            raise


class Unmovable(Honest):
    subject: type[Struct] = Loose


class Mute(Honest):
    def reading(self, score: float, code: str = "honest.differs") -> Reading:
        return super().reading(score * 0.4, code)


def _on(factory: Callable[[], Asker], subject: Struct | None = None) -> AskerFixture:
    return AskerFixture(factory=factory, subjects=[subject or Question(prompt="Pay?", seq=3)])


MUTANTS: dict[str, dict[str, AskerFixture]] = {
    "well_formed": {
        "asks about strings": _on(AsksAboutStrings),
        "its subject is another's": _on(Honest, Loose(prompt="?")),
        "settles no code": _on(
            lambda: ScriptedVerifier(codes=frozenset()), Case(signal=Signal(said=Honest().reading(0.5)))
        ),
    },
    "lazy": {"begins at once": _on(Eager), "reads a file": _on(Looking)},
    "asks": {"knows already": _on(Knowing), "never ends": _on(Endless), "asks an empty round": _on(AsksNothing)},
    "answers": {"says nothing": _on(Silent), "has no band": _on(Uncoded), "signs as another": _on(Forging)},
    "failures": {"gives up": _on(Hopeful)},
    "junk": {"takes it that there are draws": _on(Counting)},
    "identical_is_clear": {"takes yes for drift": _on(Suspicious)},
    "symmetric": {"warns the shadow": _on(Unfair)},
    "deterministic": {"counts what it asks": _on(Rotating)},
    "closes": {"asks on": _on(Clinging)},
    "movable": {"a tuple becomes a list": _on(Unmovable, Loose(prompt=("Pay?",)))},
    "can_alarm": {"never gets there": _on(Mute)},
}
CASES = [(law, how) for law, mutants in MUTANTS.items() for how in mutants]


@pytest.mark.parametrize(("law", "how"), CASES, ids=[f"{law}: {how}" for law, how in CASES])
def test_a_law_catches_who_breaks_it(law: str, how: str) -> None:
    (check,) = [check for check in CHECKS if name_of(check) == law]
    with pytest.raises(AssertionError, match=f"breaks the law '{law}'.*To see it again: "):
        check(MUTANTS[law][how])


def test_no_law_is_without_its_mutant() -> None:
    assert list(MUTANTS) == [name_of(check) for check in CHECKS]


def test_who_breaks_nothing_passes() -> None:
    check_asker(Honest, [Question(prompt="Pay?", seq=3)])
