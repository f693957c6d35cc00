"""The laws of redactors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from theodolite.core.redaction import Redactor
from theodolite.core.text import encodable
from theodolite.testing.checks.cost import growth
from theodolite.testing.checks.law import broken, run, unraised
from theodolite.testing.sessions import HOSTILE_TEXTS

__all__ = ("CHECKS", "RedactorFixture", "check_redactor")

# Secrets as they are planted: random, long enough not to be a word; with what patterns and cases make of text.
_SECRETS = ("canary-9f3a71c2e5", "tok.[a-z]+(x)$9f3a", "Geheimni\u00dfstra\u00dfe77", "\u0130stanbul\u2013k9x2q")

# Doubling the text may take this much longer: 2 is linear, 4 is quadratic; what memory costs lies between.
_STEEPER = 3.0
_PATTERNS = (
    "a",
    "1",
    " ",
    "@",
    "a@",
    "1-",
    "eyJ.",
    "([",
    "-----BEGIN ",
    "=a",
    "://",
    ":1",
    "\u0660",
    "\u00e9@",
    "key=",
)


@dataclass(frozen=True, kw_only=True)
class RedactorFixture:
    """A redactor under test.

    `personal` are secrets and personal data that its rules say they know, as they stand in a text. `known` are fields
    with a value of their vocabulary each, which must pass.
    """

    factory: Callable[[], Redactor]
    personal: Sequence[str] = ()
    known: Sequence[tuple[str, str]] = ()


def check_redactor(
    factory: Callable[[], Redactor],
    *,
    personal: Sequence[str] = (),
    known: Sequence[tuple[str, str]] = (),
    skips: Mapping[str, str] | None = None,
) -> None:
    """Run every law of redactors on what the factory makes.

    `skips` maps the name of a law to the reason why it cannot hold. Raises AssertionError for a broken law, ConfigError
    for a skip of an unknown law or without a reason.
    """
    run(CHECKS, RedactorFixture(factory=factory, personal=personal, known=known), skips or {})


def check_well_formed(fixture: RedactorFixture) -> None:
    """Check that records can say who redacted them."""
    redactor = fixture.factory()
    if not (redactor.name and redactor.version):
        what = f"name is {redactor.name!r} and version {redactor.version!r}"
        raise broken("well_formed", redactor, what, reproduce="look at the attributes of the redactor")


def check_total(fixture: RedactorFixture) -> None:
    """Check that no text raises, lone surrogates included, and that what comes out can be written as UTF-8."""
    redactor = fixture.factory()
    for text in _texts(fixture):
        for how, passed in _passes(redactor, text):
            with unraised("total", redactor, reproduce=how):
                out = passed()
            if not _keepable(out):
                raise broken("total", redactor, f"{out!r} cannot be kept as text", reproduce=how)


def check_pure(fixture: RedactorFixture) -> None:
    """Check that equal texts come out equal, whatever was redacted in between, and from another redactor too."""
    redactor = fixture.factory()
    first = [passed() for text in _texts(fixture) for _, passed in _passes(redactor, text)]
    for again in (redactor, fixture.factory()):
        second = [passed() for text in _texts(fixture) for _, passed in _passes(again, text)]
        if first != second:
            what = "the same texts come out another way the second time"
            raise broken("pure", redactor, what, reproduce="redact all texts of the suite twice and compare")


def check_idempotent(fixture: RedactorFixture) -> None:
    """Check that redacting what was redacted changes nothing."""
    redactor = fixture.factory()
    for text in _texts(fixture):
        for secrets in ((), _SECRETS):
            once = redactor.text(text, secrets)
            twice = redactor.text(once, secrets)
            if once != twice:
                what = f"{once[:80]!r} becomes {twice[:80]!r}"
                raise broken("idempotent", redactor, what, reproduce=f"text(text({text[:80]!r}))")


def check_secrets(fixture: RedactorFixture) -> None:
    """Check that no secret survives: in any case, beside, within or around another, or broken by punctuation."""
    redactor = fixture.factory()
    for secret in _SECRETS:
        half = len(secret) // 2
        for text in (
            secret,
            secret.upper(),
            secret.lower(),
            secret.swapcase(),
            secret * 3,
            f"{secret[:half]}{secret}{secret[half:]}",
            f"see https://example.org/?q={secret}&x=1 or <{secret}@example.org>, \u00e4{secret}\u00e4",
            f"{_SECRETS[0]}{secret}{_SECRETS[1]}",
        ):
            for secrets in ((secret,), _SECRETS, _SECRETS[::-1]):
                out = redactor.text(text, secrets)
                if secret.casefold() in out.casefold():
                    raise broken("secrets", redactor, f"{secret!r} survives", reproduce=f"text({text!r}, {secrets!r})")


def check_personal(fixture: RedactorFixture) -> None:
    """Check that what its rules say they know is gone from a text, wherever it stands."""
    redactor = fixture.factory()
    for known in fixture.personal:
        in_json = f'{{"note": "a\\n{known}\\tb"}}'
        for text in (known, f"it is {known}.", f"({known})", f"a\n{known}\nb", f"\u00e9 {known}, {known}; x", in_json):
            out = redactor.text(text)
            if known in out:
                raise broken("personal", redactor, f"{known!r} survives in {out!r}", reproduce=f"text({text!r})")


def check_denies_unknown(fixture: RedactorFixture) -> None:
    """Check that a field without a vocabulary, and a value outside of one, never pass; and that known values do."""
    redactor = fixture.factory()
    names = ["no_such_field", "", "\x00", *dict(fixture.known)]
    for name in names:
        for value in ("alice", "4111 1111 1111 1111", "canary-9f3a71c2e5", "=cmd()", "\u202ex"):
            out = redactor.field(name, value)
            if value in out:
                what = f"the unknown value {value!r} passes"
                raise broken("denies_unknown", redactor, what, reproduce=f"field({name!r}, {value!r})")
    for name, value in fixture.known:
        if redactor.field(name, value) != value:
            what = f"{value!r} is of the vocabulary of {name!r} and does not pass"
            raise broken("denies_unknown", redactor, what, reproduce=f"field({name!r}, {value!r})")


def check_linear(fixture: RedactorFixture) -> None:
    """Check that the time grows in proportion to the text, for text that patterns love to backtrack on."""
    redactor = fixture.factory()
    for pattern, secrets in [*[(pattern, ()) for pattern in _PATTERNS], ("a", _SECRETS), (_SECRETS[0], _SECRETS)]:
        grown = growth(_redacting(redactor, pattern, secrets), limit=_STEEPER, largest=1 << 20)
        if grown.ratio > _STEEPER:
            what = f"{grown.size} characters of {pattern!r} take {grown.ratio:.1f} times as long as half of them"
            raise broken("linear", redactor, what, reproduce=f"time text({pattern!r} * n) at n and 2n")


CHECKS: tuple[Callable[[RedactorFixture], None], ...] = (
    check_well_formed,
    check_total,
    check_pure,
    check_idempotent,
    check_secrets,
    check_personal,
    check_denies_unknown,
    check_linear,
)
"""Every law of redactors."""


def _texts(fixture: RedactorFixture) -> tuple[str, ...]:
    spoken = "Dear Ms. Example, your order 1234567890 of 2026-11-29 is on its way. It costs 30.20 EUR. [REDACTED]"
    return (*HOSTILE_TEXTS, spoken, *_SECRETS, " ".join(_SECRETS), *fixture.personal, " / ".join(fixture.personal))


def _keepable(out: object) -> bool:
    return isinstance(out, str) and encodable(out)


def _passes(redactor: Redactor, text: str) -> Iterator[tuple[str, Callable[[], str]]]:
    short = text[:80]
    yield f"text({short!r})", lambda: redactor.text(text)
    yield f"text({short!r}, secrets)", lambda: redactor.text(text, _SECRETS)
    yield f"text(text, [{short!r}])", lambda: redactor.text(f"{text} {text}", [text] if text else [])
    yield f"field('level', {short!r})", lambda: redactor.field("level", text)
    yield f"field({short!r}, 'value')", lambda: redactor.field(text, "value")


def _redacting(redactor: Redactor, pattern: str, secrets: Sequence[str]) -> Callable[[int], Callable[[], object]]:
    def prepare(size: int) -> Callable[[], object]:
        text = (pattern * size)[:size]
        return lambda: redactor.text(text, secrets)

    return prepare
