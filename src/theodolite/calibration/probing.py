"""What the differences of probes weigh, fitted to sessions that were put probes: coefficients of the detector of them.

Each coefficient is fitted where there is enough to fit it to, and left out where there is not: the detector then uses
its estimate, which is UNCALIBRATED, and the artefact's warnings name it. Fits are to single probes, of which those of
one session are alike: a coefficient has no interval, and what it is worth is told by the thresholds that are fitted
with it to other sessions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from theodolite.calibration.fusing import FEWEST_DRIFTED
from theodolite.calibration.regression import regressed
from theodolite.calibration.sample import Probed
from theodolite.calibration.table import Rows, Table
from theodolite.detectors.behavior.accumulation import DriftAccumulator, ProbeOutcomeFacts
from theodolite.detectors.behavior.bands import SESSION
from theodolite.detectors.behavior.probe import ProbeType
from theodolite.detectors.behavior.seen import ProbeSeen
from theodolite.detectors.behavior.tuning import ALIKE, ESTIMATES, FIELDS, JUDGMENT, PARTS, Tuning
from theodolite.stats.conformal import threshold

__all__ = ("code_of", "counted", "put_probes", "tuned")

# Probes of a kind, drifted and clean ones, without which nothing is said of it: as many as sessions. Our choice.
_FEWEST = FEWEST_DRIFTED
# The best share of the wealth to bet is looked for among these; what is bet beside it are a third and two thirds of it,
# as the estimates are.
_SHARES = tuple([share / 20 for share in range(1, 20)])
_MOST_MULTIPLIED = 4.0
_DECIMALS = 3


def tuned(table: Table, fitting: Rows) -> Tuning:
    """Return what differences weigh and what is bet on them, as these sessions support it; `fitted` names it.

    Thresholds are then for other sessions. Raises MissingExtraError without the extra `calibrate`.
    """
    sessions = [(table.clean(row), probed) for row in fitting if (probed := table.probed(row)) is not None]
    drifted = sum(not is_clean for is_clean, _ in sessions)
    given: dict[str, object] = {}
    if min(drifted, len(sessions) - drifted) >= FEWEST_DRIFTED:
        probes = [(one, not is_clean) for is_clean, probed in sessions for one in probed.probes if not one.explained]
        given.update(_weights(probes))
        given.update(_judgment(probes, Tuning.of(given)))
        given.update(_fractions([probed for is_clean, probed in sessions if not is_clean]))
    return Tuning.of(given)


def counted(table: Table, fitting: Rows, clean: Rows, tuning: Tuning, alpha: float) -> Tuning:
    """Return the numbers with those that count probes which differ, by the weights and thresholds that were fitted.

    They change no score. The composite is fitted to the sessions `fitting`; `clean` tell how clean ones vary.
    """
    given = tuning.coefficients()
    sessions = [(table.clean(row), probed) for row in fitting if (probed := table.probed(row)) is not None]
    given.update(
        _longitudinal(sessions, [one for row in clean if (one := table.probed(row)) is not None], tuning, alpha)
    )
    known = [one for row in clean if (probed := table.probed(row)) is not None for one in probed.probes]
    given.update(_penalties(known, tuning))
    given.update(_consistency(known, tuning, alpha))
    return Tuning.of(given)


def _weights(probes: Sequence[tuple[ProbeSeen, bool]]) -> Iterator[tuple[str, object]]:
    """Yield what fields weigh, the heaviest 1, and what they are multiplied with in each type of probe.

    Each type has a slope of its own over the weighed sum; a type with few probes has that of all.
    """
    truths = [drifted for _, drifted in probes]
    rows = [[float(field in one.counted) for field in FIELDS] for one, _ in probes]
    prior = [ESTIMATES.weights[field] for field in FIELDS]
    # Two wordings of one reason differ as texts: they have no direction, and their weight is not fitted.
    line = regressed([row[:-1] for row in rows], truths, prior=prior[:-1])
    most = max(line.weights)
    if most <= 0.0:
        return
    weights = {field: round(weight / most, _DECIMALS) for field, weight in zip(FIELDS, line.weights, strict=False)}
    weights[FIELDS[-1]] = ESTIMATES.weights[FIELDS[-1]]
    yield "weights", weights
    sums = [sum(weights[field] for field in one.counted) for one, _ in probes]
    whole = regressed([[total] for total in sums], truths, prior=[most]).weights[0]
    multipliers = dict.fromkeys([kind.value for kind in ProbeType], 1.0)
    for kind in ProbeType:
        part = [(total, drifted) for total, (one, drifted) in zip(sums, probes, strict=True) if one.kind is kind]
        counts = Counter(drifted for _, drifted in part)
        if min(counts[True], counts[False]) >= _FEWEST and whole > 0.0:
            slope = regressed([[total] for total, _ in part], [drifted for _, drifted in part], prior=[whole])
            ratio = slope.weights[0] / whole
            multipliers[kind.value] = round(min(_MOST_MULTIPLIED, max(1 / _MOST_MULTIPLIED, ratio)), _DECIMALS)
    yield "multipliers", multipliers


def _judgment(probes: Sequence[tuple[ProbeSeen, bool]], tuning: Tuning) -> Iterator[tuple[str, object]]:
    """Yield what each answer of a judge adds to its score, of 1 in all, and what that adds to the fields' score."""
    rows: list[tuple[float, ...]] = []
    truths: list[bool] = []
    for one, drifted in probes:
        said = one.heard
        if said is not None:
            fields = replace(one, judgment=None).scored(tuning)
            against = (not said.policy_ref_match, not said.decision_direction_match, said.context_contradiction)
            rows.append((fields, *map(float, against)))
            truths.append(drifted)
    if min(truths.count(True), truths.count(False)) < _FEWEST:
        return
    prior = (1.0, *[ESTIMATES.judged * ESTIMATES.judge[name] for name in JUDGMENT])
    fields, *weights = regressed(rows, truths, prior=prior).weights
    total = sum(weights)
    if total > 0.0:
        yield "judge", {name: round(weight / total, _DECIMALS) for name, weight in zip(JUDGMENT, weights, strict=True)}
    if fields > 0.0:
        yield "judged", round(min(1.0, total / fields), _DECIMALS)


def _longitudinal(
    sessions: Sequence[tuple[bool, Probed]], clean: Sequence[Probed], tuning: Tuning, alpha: float
) -> Iterator[tuple[str, object]]:
    """Yield what the parts of the composite weigh, of 1 in all, and the composite that few clean sessions reach.

    How often probes differ is counted anew; the trend is that of the scores as they were.
    """
    rows = [(_parts(probed, tuning), not is_clean) for is_clean, probed in sessions if probed.composite is not None]
    truths = [drifted for _, drifted in rows]
    if min(truths.count(True), truths.count(False)) < _FEWEST:
        return
    line = regressed([row for row, _ in rows], truths, prior=[ESTIMATES.longitudinal[name] for name in PARTS])
    total = sum(line.weights)
    if total <= 0.0:
        return
    weights = {name: round(weight / total, _DECIMALS) for name, weight in zip(PARTS, line.weights, strict=True)}
    yield "longitudinal", weights
    told = Tuning.of({"longitudinal": weights})
    review = threshold([told.composite(_parts(one, tuning)) for one in clean if one.composite is not None], alpha)
    if review is not None:
        yield "review", round(min(1.0, review), _DECIMALS)


def _parts(probed: Probed, tuning: Tuning) -> list[float]:
    """Return the parts of the composite, in the order of PARTS."""
    share = sum(_differs(one, tuning) for one in probed.probes) / len(probed.probes)
    told: list[float] = [getattr(probed.composite, name) for name in PARTS]
    return [share, *told[1:]]


def _fractions(drifted: Iterable[Probed]) -> Iterator[tuple[str, object]]:
    """Yield the shares of the wealth to bet: the one that grows best on drifted sessions, two thirds and a third."""
    draws = Counter(draw for probed in drifted for one in probed.probes for draw in (*one.observed, *one.decided))
    if draws.total() < _FEWEST:
        return

    def growth(share: float) -> float:
        return math.fsum(count * math.log1p(share * draw) for draw, count in sorted(draws.items()))

    best = max(_SHARES, key=growth)
    if growth(best) > 0.0:
        yield "fractions", [round(best * part / 3, _DECIMALS) for part in (1, 2, 3)]


def _penalties(probes: Sequence[ProbeSeen], tuning: Tuning) -> Iterator[tuple[str, object]]:
    """Yield what confidence is multiplied with where arms are not known to be alike in a thing.

    It is how much more seldom clean probes differ where all is alike than where that alone is not, a probe added to
    each side. Where that never was, the estimate stays.
    """
    alike = [one for one in probes if not one.lacking]
    given = dict(ESTIMATES.penalties)
    found = False
    for name in ALIKE:
        lacking = [one for one in probes if one.lacking == (name,)]
        if min(len(alike), len(lacking)) >= _FEWEST:
            ratio = _differing(alike, tuning) / _differing(lacking, tuning)
            given[name], found = round(max(0.01, min(1.0, ratio)), _DECIMALS), True
    if found:
        yield "penalties", given


def _differs(one: ProbeSeen, tuning: Tuning) -> bool:
    return one.scored(tuning) >= tuning.thresholds[one.kind]


def _differing(probes: Sequence[ProbeSeen], tuning: Tuning) -> float:
    return (sum(_differs(one, tuning) for one in probes) + 1) / (len(probes) + 2)


def _consistency(probes: Sequence[ProbeSeen], tuning: Tuning, alpha: float) -> Iterator[tuple[str, object]]:
    """Yield how many probes in a row without a difference are more than chance makes of how clean ones vary.

    A share p of clean probes differs, at the sampling that these sessions were asked with: s in a row do not with a
    probability of (1 - p) ** s. Where none differs a streak says nothing, and is never noted.
    """
    if len(probes) < _FEWEST:
        return
    share = sum(_differs(one, tuning) for one in probes) / len(probes)
    within = 0.0 < share < 1.0
    yield "consistency", max(1, math.ceil(math.log(alpha) / math.log1p(-share))) if within else None


def code_of(kind: ProbeType) -> str:
    """Return the code under which probes of a type are told."""
    return f"behavior.{kind.value}"


def put_probes(table: Table, tuning: Tuning) -> None:
    """Put what probes come to with these numbers into the table: the highest score of each type, and of the session.

    Where a second opinion upheld a difference the score is 1: a live one is then at its threshold, wherever that lies.
    """
    highest: dict[ProbeType, list[float]] = {kind: [0.0] * len(table) for kind in ProbeType}
    evidence = list(table.scores(SESSION))
    for row in range(len(table)):
        probed = table.probed(row)
        for one in () if probed is None else probed.probes:
            highest[one.kind][row] = max(highest[one.kind][row], 1.0 if one.upheld else one.scored(tuning))
        if probed is not None and "fractions" in tuning.fitted:
            evidence[row] = max(_evidence(probed, tuning), 0.0)
    for kind, scores in highest.items():
        if code_of(kind) in table.codes:
            table.put(code_of(kind), scores)
    if SESSION in table.codes:
        table.put(SESSION, evidence)


def _evidence(probed: Probed, tuning: Tuning) -> float:
    """Return the highest score of a session whose probes are bet on with these fractions: 1 - 1 / e.

    What was read from probabilities is not bet on, and stays what it came to.
    """
    told = probed.composite
    exactly = None if told is None or told.exactly in {0.0, 1.0} else told.exactly
    accumulator = DriftAccumulator(probe_library_version="", exact=exactly is not None)
    highest = 1.0
    for one in probed.probes:
        facts = ProbeOutcomeFacts(
            probe_id=one.probe,
            probe_library_version="",
            observed=one.observed,
            decision=one.decided,
            decision_maximum=exactly,
            cached=one.cached,
            explained=one.explained,
        )
        accumulator.add(facts, tuning)
        highest = max(highest, accumulator.evidence)
    return 1.0 - 1.0 / highest
