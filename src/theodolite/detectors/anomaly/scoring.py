"""From the traits of a window to a score and its reasons: one logistic sum of weights, from a file of coefficients."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from itertools import islice
from operator import is_
from typing import Literal

import msgspec
from msgspec import Struct

from theodolite.core.anomaly import CRITICAL, SUSPICIOUS, AnomalyClass, AnomalyResult, class_of
from theodolite.core.errors import CalibrationError
from theodolite.core.intent import NormalizedIntent
from theodolite.detectors.anomaly.rules import broken_by
from theodolite.detectors.anomaly.tasks import task_of
from theodolite.detectors.anomaly.traits import TRAITS, UNEXPECTED, sign_of, traits_of
from theodolite.stats.logistic import probability

__all__ = ("Coefficients", "Contribution", "Scoring", "shipped")

# Windows of this many calls: axor-classifier-simple's `window_size`.
WINDOW = 10
# Reasons weigh at least this much in log-odds, which makes odds 1.65 times as high: what is less is not worth a word.
_WORTH_A_WORD = 0.5
_REASONS = 8
# Sums of weights that were seen before; there are few different sets of traits, and a hostile stream makes no more.
_REMEMBERED = 8_192
_NOTHING = AnomalyResult(0.0, AnomalyClass.NORMAL)


class Coefficients(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A model: log-odds of a window without traits, and what each trait adds. Made by `benchmarks/anomaly.py --fit`.

    `data` says what it was fitted on. Raises ValueError for a trait that is unknown, and for a number that is not
    finite; a weight below 0 would let an attacker lower the score by doing more, and is refused too.
    """

    schema: Literal[1]
    version: str
    bias: float
    weights: dict[str, float]
    data: dict[str, int | str] = {}

    def __post_init__(self) -> None:
        unknown = sorted(self.weights.keys() - set(TRAITS.values()))
        if unknown:
            raise ValueError(f"there is no trait {unknown[0]!r}")
        for name, weight in [("bias", self.bias), *self.weights.items()]:
            if not math.isfinite(weight) or (weight < 0.0 and name != "bias"):
                raise ValueError(f"the weight of {name} is {weight}: it must be a number, 0 or more")

    @classmethod
    def load(cls, document: bytes, name: str) -> Coefficients:
        """Return the model of a JSON document called `name`. Raises CalibrationError with the place of the fault."""
        try:
            return msgspec.json.decode(document, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise CalibrationError(f"{name} is no model of anomalies: {error}. Make one with --fit.") from error


@cache
def shipped() -> Coefficients:
    """Return the coefficients that come with the package. Reads its file once."""
    document = files("theodolite.detectors.anomaly").joinpath("model.json").read_bytes()
    return msgspec.json.decode(document, type=Coefficients)


class Contribution(Struct, frozen=True, gc=False):
    """What one trait added to the log-odds of a score."""

    bit: int
    trait: str
    weight: float


class Scoring:
    """Scores windows. Shared by threads; remembers what sets of traits came to, and nothing of windows.

    >>> scoring = Scoring()
    >>> scoring.score([]).cls.value
    'normal'
    >>> scoring.score([NormalizedIntent(tool="curl", target_kind="cloud_metadata")]).reasons[0]
    'cloud_metadata'
    """

    def __init__(
        self,
        model: Coefficients | None = None,
        *,
        window_size: int = WINDOW,
        suspicious: float = SUSPICIOUS,
        critical: float = CRITICAL,
    ) -> None:
        self.model = shipped() if model is None else model
        self.size = window_size
        self._suspicious, self._critical = suspicious, critical
        self._weights = {bit: self.model.weights.get(name, 0.0) for bit, name in TRAITS.items()}
        self._known: dict[tuple[int, tuple[str, ...]], AnomalyResult] = {}

    def score(self, window: Sequence[NormalizedIntent], hint: str = "", policy: str = "") -> AnomalyResult:
        """Return what a window is worth: the last intents by the model, all of them by the rules.

        An empty one is worth nothing. Linear in its length.
        """
        signs = list(map(sign_of, window))
        last = window[-self.size :] if hint or policy else ()
        return self.result(signs, unexpected=self.unexpected(last, hint, policy))

    def score_batch(
        self, windows: Iterable[Sequence[NormalizedIntent]], hint: str = "", policy: str = ""
    ) -> list[AnomalyResult]:
        """Return what each of many windows is worth; where they slide along one stream, an intent is read once."""
        before: tuple[NormalizedIntent, ...] = ()
        signs: list[int] = []
        found: list[AnomalyResult] = []
        asked = any(task_of(hint, policy))
        for window in windows:
            slid = bool(before) and len(window) == len(before) and all(map(is_, window, islice(before, 1, None)))
            signs = [*signs[1:], sign_of(window[-1])] if slid else list(map(sign_of, window))
            before = tuple(window)  # the list may be the caller's to change
            unexpected = asked and self.unexpected(window[-self.size :], hint, policy)
            found.append(self.result(signs, unexpected=unexpected))
        return found

    def unexpected(self, window: Iterable[NormalizedIntent], hint: str, policy: str) -> bool:
        """Whether a window holds a tool class that the stated task does not explain."""
        task = task_of(hint, policy)
        return any(task) and any(map(task.unexpected, window))

    def result(self, signs: Sequence[int], *, unexpected: bool = False) -> AnomalyResult:
        """Return what a window is worth by the signs of its intents."""
        if not signs:
            return _NOTHING
        traits = traits_of(signs[-self.size :]) | (UNEXPECTED if unexpected else 0)
        broken = broken_by(signs)
        known = self._known.get((traits, broken))
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[traits, broken] = self.of(traits, broken)
        return known

    def of(self, traits: int, broken: tuple[str, ...] = ()) -> AnomalyResult:
        """Return what some traits and broken rules are worth. A broken rule is worth 1 whatever else there is."""
        score = 1.0 if broken else probability(self.log_odds(traits))
        cls = class_of(score, suspicious=self._suspicious, critical=self._critical)
        reasons = [part.trait for part in self.contributions(traits) if part.weight >= _WORTH_A_WORD]
        return AnomalyResult(score, cls, (*broken, *reasons)[:_REASONS], self._suspicious, self._critical)

    def log_odds(self, traits: int) -> float:
        """Return the sum of the weights of some traits and the bias."""
        return self.model.bias + sum(part.weight for part in self.contributions(traits))

    def contributions(self, traits: int) -> tuple[Contribution, ...]:
        """Return what each of some traits adds, the most first."""
        found = [Contribution(bit, TRAITS[bit], weight) for bit, weight in self._weights.items() if bit & traits]
        return tuple(sorted(found, key=lambda part: (-part.weight, part.trait)))
