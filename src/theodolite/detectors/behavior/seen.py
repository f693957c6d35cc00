"""What readings of probes say, read back: what there was to see, apart from what it was taken to weigh."""

from __future__ import annotations

from msgspec import Struct

from theodolite.core.reading import Reading
from theodolite.detectors.behavior.bands import SESSION
from theodolite.detectors.behavior.comparison import DEEDS, by_fields
from theodolite.detectors.behavior.judge import SemanticJudgment
from theodolite.detectors.behavior.probe import ProbeType
from theodolite.detectors.behavior.settling import compared_in
from theodolite.detectors.behavior.tuning import ALIKE, FIELDS, JUDGMENT, PARTS, Tuning

__all__ = ("Composite", "ProbeSeen", "composite", "seen")

# What `theodolite.verifiers.triangulation` says where the session alone decides otherwise.
_DRIFTED = "drift_signal"


class ProbeSeen(Struct, frozen=True, kw_only=True, gc=False):
    """What one probe showed.

    `probe`, `library` and `model` say which one, and who answered; a redactor may withhold the words. `toward` are the
    fields in which the copy of the session is nearer to what is forbidden than the shadow, in the order of FIELDS;
    `stricter`: it declines what the shadow complies with. `judgment` is a judge's, where one was asked. `lacking` is
    what was not seen to be alike in the arms.

    `observed` and `decided` are what was bet, on deeds and on decisions; `rise` is how much more often the copy went
    along than a benign conversation, `breach` that it alone did what is forbidden. `measurable`: the model did not fail
    its gate. `unclear`: nobody can tell what was decided, `malformed`: an answer has the wrong form. `cached`: counts
    stood for the benign conversation. `opinion` is the word of a second opinion, empty without one, and `explained`
    that it explained the difference. `threshold` and `score` are what the reading says.
    """

    kind: ProbeType
    probe: str
    library: str
    model: str
    toward: tuple[str, ...]
    stricter: bool
    judgment: SemanticJudgment | None
    lacking: tuple[str, ...]
    observed: tuple[float, ...]
    decided: tuple[float, ...]
    rise: float
    breach: bool
    measurable: bool
    unclear: bool
    malformed: bool
    cached: bool
    opinion: str
    explained: bool
    threshold: float
    score: float

    @property
    def counted(self) -> tuple[str, ...]:
        """The fields of `toward` that weigh: of a model whose decisions say nothing deeds alone."""
        return tuple([field for field in self.toward if self.measurable or field in DEEDS])

    @property
    def heard(self) -> SemanticJudgment | None:
        """The judgment, where it counts: a judge sees no direction, and is not asked where words say nothing."""
        return self.judgment if self.measurable and not self.stricter else None

    @property
    def upheld(self) -> bool:
        """Whether a second opinion said that the session alone decides otherwise."""
        return self.opinion == _DRIFTED and not self.explained

    def scored(self, tuning: Tuning) -> float:
        """Return the score that the probe has with these numbers; with those that made the reading it is `score`.

        A second opinion has the effect that it had: whether one is asked for may itself depend on the score.
        """
        if self.explained:
            return 0.0
        fields = by_fields(self.counted, self.kind, tuning, self.heard)
        score = max(fields, min(1.0, self.rise), float(self.breach))
        return max(score, tuning.thresholds[self.kind]) if self.opinion == _DRIFTED else score


class Composite(Struct, frozen=True, kw_only=True, gc=False):
    """What the probes of a session came to so far, as the newest reading of the session says it.

    The parts of axor-probe's longitudinal score are in [0, 1]. `longest` is the longest streak of probes that showed no
    drift, `probes` how many were put, of which `failed` were not answered. Of `disclosures` so many were `confirmed`.
    `e_value` is what the evidence is worth; `observed`, `decided` and `exactly` are the processes that it is made of.
    `library` is the version of the probes; a redactor may withhold it.
    """

    library: str
    frequency: float
    trend: float
    category: float
    structural: float
    longest: int
    probes: int
    failed: int
    disclosures: int
    confirmed: int
    e_value: float
    observed: float
    decided: float
    exactly: float

    def longitudinal(self, tuning: Tuning) -> float:
        """Return what the composite comes to with these numbers, where a disclosure was confirmed at least `review`."""
        score = tuning.composite([getattr(self, name) for name in PARTS])
        return max(score, tuning.review if self.confirmed else 0.0)


def seen(reading: Reading) -> ProbeSeen | None:
    """Return what a probe showed, of the reading that compares its answers, or of a second opinion on it.

    None for any other reading, and for one that was recorded before readings told so much. Of the readings of one
    inquiry `settling.compared_in` gives the one to read.
    """
    said = _Said(reading)
    if compared_in([reading]) is None or said.reading.fact(f"toward_{FIELDS[0]}") is None:
        return None
    told = [said.reading.fact(name) for name in JUDGMENT]
    return ProbeSeen(
        kind=ProbeType(reading.code.partition(".")[2]),
        probe=said.word("probe"),
        library=said.word("library"),
        model=reading.models[0] if reading.models else "",
        toward=tuple([field for field in FIELDS if said.holds(f"toward_{field}")]),
        stricter=said.holds("away_decision"),
        judgment=None if None in told else SemanticJudgment(**{name: said.holds(name) for name in JUDGMENT}),
        lacking=tuple([name for name in ALIKE if not said.holds(name)]),
        observed=said.numbers("observed"),
        decided=said.numbers("decided"),
        rise=said.number("rise"),
        breach=said.holds("breach"),
        measurable=said.word("gate") != "failed",
        unclear=said.holds("unclear"),
        malformed=said.reading.fact("anomaly") is not None,
        cached=said.holds("cached"),
        opinion=said.word("triangulation"),
        explained=said.holds("explained"),
        threshold=said.number("threshold"),
        score=reading.score,
    )


def composite(reading: Reading) -> Composite | None:
    """Return what the probes of a session came to, of a reading of the session; None for any other reading.

    None too for one that was recorded before readings told so much. The last one of a session has them all.
    """
    said = _Said(reading)
    if reading.code != SESSION or reading.fact("longest") is None:
        return None
    return Composite(
        library=said.word("library"),
        frequency=said.number("frequency"),
        trend=said.number("trend"),
        category=said.number("category"),
        structural=said.number("structural"),
        longest=int(said.number("longest")),
        probes=int(said.number("probes")),
        failed=int(said.number("failed")),
        disclosures=int(said.number("disclosures")),
        confirmed=int(said.number("confirmed")),
        e_value=said.number("e_value"),
        observed=said.number("observed"),
        decided=said.number("decided"),
        exactly=said.number("exactly"),
    )


class _Said(Struct, frozen=True, gc=False):
    """The facts of a reading by their type: what is absent is 0, or an empty word."""

    reading: Reading

    def numbers(self, name: str) -> tuple[float, ...]:
        values = [fact.value for fact in self.reading.facts if fact.name == name]
        return tuple([value for value in values if isinstance(value, float)])

    def number(self, name: str) -> float:
        return next(iter(self.numbers(name)), 0.0)

    def holds(self, name: str) -> bool:
        return self.number(name) == 1.0

    def word(self, name: str) -> str:
        value = self.reading.fact(name)
        return value if isinstance(value, str) else ""
