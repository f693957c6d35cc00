"""Labeled sessions made on this machine, written as files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from theodolite.calibration.agentdojo import ATTACKS, Benchmark, Made, Pair
from theodolite.cli.counting import counting
from theodolite.cli.exits import NOTHING, say
from theodolite.config.settings import nearest
from theodolite.core.errors import ConfigError
from theodolite.core.labels import Known
from theodolite.reports.layout import counted

__all__ = ("Making", "make_sessions")


class Making(Protocol):
    """What makes sessions of pairs: the installed benchmark."""

    @property
    def suites(self) -> tuple[str, ...]:
        """Return the names of its suites."""
        ...

    @property
    def attacks(self) -> tuple[str, ...]:
        """Return the names of its attacks."""
        ...

    def pairs(self, suites: Sequence[str], attacks: Sequence[str], limit: int | None = None) -> list[Pair]:
        """Return what there is to make."""
        ...

    def make(self, pair: Pair) -> Made | None:
        """Return a session, None where it did not come to what it should."""
        ...


def make_sessions(
    folder: Path,
    *,
    suites: Sequence[str],
    attacks: Sequence[str],
    limit: int | None,
    benchmark: Callable[[], Making] = Benchmark,
) -> int:
    """Make sessions, write each as a file below a folder, say how many of which label, and return the exit status.

    Raises ConfigError for a folder that holds something or cannot be written, and for a name that there is not;
    MissingExtraError without the benchmark.
    """
    _check(folder)
    makes = benchmark()  # takes seconds, and may not be installed: nothing is written before it is there
    chosen = suites or makes.suites
    meant = attacks or ATTACKS
    for named, given, known in (("suite", chosen, makes.suites), ("attack", meant, makes.attacks)):
        for name in given:
            if name not in known:
                raise ConfigError(f"--{named} {name!r}: there is none; {nearest(name, list(known))}")
    pairs = makes.pairs(tuple(dict.fromkeys(chosen)), tuple(dict.fromkeys(meant)), limit)
    made: Counter[Known | None] = Counter()
    left = 0
    for pair in counting(pairs, "sessions", len(pairs)):
        session = makes.make(pair)
        if session is None:
            left += 1
            continue
        made[session.label.known] += 1
        _write(folder / session.path, session.data)
    told = f"{made[Known.CLEAN]:,} clean and {made[Known.DRIFTED]:,} drifted"
    say(f"made {told} in {folder}; {counted(left, 'pair')} left out, which did not come to what they should")
    say(f"next: theodolite calibrate {folder} --out calibration.json")
    return NOTHING


def _check(folder: Path) -> None:
    try:
        if folder.is_dir() and any(folder.iterdir()):
            raise ConfigError(f"{folder} holds something already: name a new folder, or an empty one")
        if not folder.is_dir() and (folder.exists() or folder.is_symlink()):
            raise ConfigError(f"{folder} is no folder: name a new one, or an empty one")
    except OSError as error:
        raise ConfigError(f"{folder} cannot be read ({error.strerror}): name another folder") from error


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written ({error.strerror}): free space, or name another folder") from error
