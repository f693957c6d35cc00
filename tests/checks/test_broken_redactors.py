"""Each law of redactors catches a redactor that breaks it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterator

import pytest

from theodolite.core.redaction import Redacted, Redactor
from theodolite.core.text import printable
from theodolite.testing.checks.law import name_of
from theodolite.testing.checks.redactor import CHECKS, RedactorFixture, check_redactor

PERSONAL = ("alice@example.org", "4111 1111 1111 1111")
KNOWN = (("decision", "comply"),)


class Honest:
    """Knows one address, one card and one field: the redactor that every mutant here was once."""

    name = "honest"
    version = "1"
    marker = "[REDACTED]"

    def text(self, value: str, secrets: Collection[str] = ()) -> Redacted:
        value = printable(value)
        for wanted in self.wanted(secrets):
            value = self.without(value, wanted)
        return Redacted(value)

    def wanted(self, secrets: Collection[str]) -> list[str]:
        return [*secrets, *PERSONAL]

    def without(self, value: str, wanted: str) -> str:
        if wanted.casefold() not in value.casefold():
            return value
        pieces: list[str] = []
        end = 0
        for start, stop in self.places(value, wanted.casefold()):
            pieces += [value[end:start], self.marker]
            end = stop
        return "".join([*pieces, value[end:]])

    def places(self, value: str, wanted: str) -> Iterator[tuple[int, int]]:
        """Yield where it stands. A letter may be more than one when its case is folded."""
        folded = [letter.casefold() for letter in value]
        origin = [place for place, letters in enumerate(folded) for _ in letters]
        text = "".join(folded)
        start = text.find(wanted)
        while start >= 0:
            stop = start + len(wanted)
            yield origin[start], origin[stop - 1] + 1
            start = text.find(wanted, stop)

    def field(self, name: str, value: str) -> Redacted:
        return Redacted(value if (name, value) in KNOWN else self.marker)


class Nameless(Honest):
    version = ""


class Narrow(Honest):
    """Has no idea of lone surrogates."""

    def text(self, value: str, secrets: Collection[str] = ()) -> Redacted:
        value.encode()
        return super().text(value, secrets)


class Passing(Honest):
    """Lets through what no file takes."""

    def text(self, value: str, secrets: Collection[str] = ()) -> Redacted:
        return Redacted(value) if value.isspace() or not value.isprintable() else super().text(value, secrets)


class Numbering(Honest):
    numbers = itertools.count()

    def text(self, value: str, secrets: Collection[str] = ()) -> Redacted:
        return Redacted(f"{super().text(value, secrets)}{next(self.numbers)}")


class Quoting(Honest):
    def text(self, value: str, secrets: Collection[str] = ()) -> Redacted:
        return Redacted(super().text(value, secrets).replace("\\", "\\\\"))


class CaseBound(Honest):
    def without(self, value: str, wanted: str) -> str:
        return value.replace(wanted, self.marker)


class Once(Honest):
    """Takes a secret out and leaves what closes up around it."""

    marker = ""

    def without(self, value: str, wanted: str) -> str:
        return re.sub(re.escape(wanted), "", value, flags=re.IGNORECASE)


class Patterned(Honest):
    """Takes a secret for a pattern."""

    def without(self, value: str, wanted: str) -> str:
        return re.sub(wanted, self.marker, value, flags=re.IGNORECASE)


class Unknowing(Honest):
    def wanted(self, secrets: Collection[str]) -> list[str]:
        return list(secrets)


class AtWords(Honest):
    """Finds what stands between blanks alone."""

    def wanted(self, secrets: Collection[str]) -> list[str]:
        return list(secrets)

    def text(self, value: str, secrets: Collection[str] = ()) -> Redacted:
        for known in PERSONAL:
            value = re.sub(rf"(?<!\S){re.escape(known)}(?!\S)", self.marker, value)
        return super().text(value, secrets)


class Welcoming(Honest):
    def field(self, name: str, value: str) -> Redacted:
        return Redacted(value if value.isalnum() else f"{self.marker}{name and ''}")


class Strict(Honest):
    def field(self, name: str, value: str) -> Redacted:
        del name, value
        return Redacted(self.marker)


class Rescanning(Honest):
    def text(self, value: str, secrets: Collection[str] = ()) -> Redacted:
        for start in range(0, len(value), 16):
            value.find("@@", start)
        return super().text(value, secrets)


def _on(factory: Callable[[], Redactor]) -> RedactorFixture:
    return RedactorFixture(factory=factory, personal=PERSONAL, known=KNOWN)


MUTANTS: dict[str, dict[str, RedactorFixture]] = {
    "well_formed": {"no version": _on(Nameless)},
    "total": {"raises": _on(Narrow), "lets surrogates through": _on(Passing)},
    "pure": {"numbers its texts": _on(Numbering)},
    "idempotent": {"quotes again": _on(Quoting)},
    "secrets": {"in one case": _on(CaseBound), "closes up": _on(Once), "takes it for a pattern": _on(Patterned)},
    "personal": {"knows none": _on(Unknowing), "between blanks": _on(AtWords)},
    "denies_unknown": {"lets words through": _on(Welcoming), "lets nothing through": _on(Strict)},
    "linear": {"looks from every place": _on(Rescanning)},
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
    check_redactor(Honest, personal=PERSONAL, known=KNOWN)
