"""The samples of a dataset in columns: a hundred thousand sessions take some ten megabytes."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Self

from theodolite.calibration.sample import FOLDS, Known, Probed, Sample

__all__ = ("Rows", "Table")

Rows = Sequence[int]
"""The numbers of some sessions of a table, in order."""


class Table:
    """Samples in the order in which they were added; nothing of a session but numbers, and names that many share.

    `agents` and `models` count the clean sessions of each: those that a threshold is fitted to. `failed` counts the
    sessions in which a detector failed.

    State: eight bytes a session for each code and each kind of slice, and what its calls said. Cost: linear.
    """

    def __init__(self) -> None:
        self.agents: Counter[str] = Counter()
        self.models: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self._clean = bytearray()
        self._folds = bytearray()
        self._highest: dict[str, array[float]] = {}
        self._slices: dict[str, _Names] = {}
        self._fronts: dict[int, tuple[Mapping[str, float], ...]] = {}
        self._probed: dict[int, Probed] = {}

    @classmethod
    def of(cls, samples: Iterable[Sample]) -> Self:
        """Return the table of some samples."""
        table = cls()
        for sample in samples:
            table.add(sample)
        return table

    def add(self, sample: Sample) -> None:
        """Add one session."""
        row = len(self._clean)
        self._clean.append(sample.known is Known.CLEAN)
        self._folds.append(sample.fold)
        if sample.known is Known.CLEAN:
            self.agents[sample.agent] += 1
            self.models.update(sample.models)
        self.failed.update(sample.failed.keys())
        for code in sample.highest:
            if code not in self._highest:
                self._highest[code] = array("d", bytes(8 * row))
        for code, scores in self._highest.items():
            scores.append(sample.highest.get(code, 0.0))
        for key in sample.slices:
            if key not in self._slices:
                self._slices[key] = _Names(row)
        for key, names in self._slices.items():
            names.append(sample.slices.get(key, ""))
        if sample.front:
            self._fronts[row] = sample.front
        if sample.probed is not None:
            self._probed[row] = sample.probed

    def __len__(self) -> int:
        """Return how many sessions there are."""
        return len(self._clean)

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes that spoke in any session, in order of their names."""
        return tuple(sorted(self._highest))

    def rows(self, known: Known) -> Rows:
        """Return the sessions that are known to be clean, or drifted."""
        wanted = known is Known.CLEAN
        return [row for row, clean in enumerate(self._clean) if clean == wanted]

    def clean(self, row: int) -> bool:
        """Whether a session is known to be clean."""
        return bool(self._clean[row])

    def fold(self, row: int) -> int:
        """Return which of five folds a session is in."""
        return self._folds[row]

    def scores(self, code: str) -> Sequence[float]:
        """Return the highest score of a code in each session."""
        known = self._highest.get(code)
        return array("d", bytes(8 * len(self))) if known is None else known

    def put(self, code: str, scores: Iterable[float]) -> None:
        """Put other scores in the place of those of a code."""
        self._highest[code] = array("d", scores)

    def front(self, row: int) -> tuple[Mapping[str, float], ...]:
        """Return what was said of the calls of a session."""
        return self._fronts.get(row, ())

    def probed(self, row: int) -> Probed | None:
        """Return what the probes of a session showed; None where it was put none."""
        return self._probed.get(row)

    def slices(self) -> Iterator[tuple[str, Rows]]:
        """Yield each slice by its name, with its sessions, in order of names."""
        for key in sorted(self._slices):
            yield from ((f"{key}: {name}", rows) for name, rows in self._slices[key].slices())

    def folds(self, rows: Rows) -> list[list[int]]:
        """Return these sessions by folds."""
        parts: list[list[int]] = [[] for _ in range(FOLDS)]
        for row in rows:
            parts[self._folds[row]].append(row)
        return parts


class _Names:
    """A column of names, each kept once."""

    def __init__(self, rows: int) -> None:
        self._numbers = {"": 0}
        self._column = array("i", bytes(4 * rows))

    def append(self, name: str) -> None:
        self._column.append(self._numbers.setdefault(name, len(self._numbers)))

    def slices(self) -> Iterator[tuple[str, Rows]]:
        rows: dict[int, list[int]] = {}
        for row, number in enumerate(self._column):
            rows.setdefault(number, []).append(row)
        for name in sorted(self._numbers):
            if name:
                yield name, rows.get(self._numbers[name], [])
