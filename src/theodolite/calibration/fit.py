"""From labeled sessions to an artefact: thresholds, coefficients, and what held-back sessions say of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from theodolite.calibration.assess import affordable, ambiguity, assess
from theodolite.calibration.fusing import (
    FEWEST_DRIFTED,
    parts_of,
    put_fused,
    put_sessions,
    sessions_held_back,
    weighed,
)
from theodolite.calibration.probing import code_of, counted, put_probes, tuned
from theodolite.calibration.table import Rows, Table
from theodolite.calibration.thresholds import STRONGER, fitted
from theodolite.core.assessment import Assessment, Threshold
from theodolite.core.calibration import Band, Calibration, Dataset, Population
from theodolite.core.errors import MissingExtraError
from theodolite.core.labels import Known
from theodolite.core.reading import Status
from theodolite.detectors.behavior.probe import ProbeType
from theodolite.detectors.behavior.tuning import ESTIMATES, Tuning
from theodolite.detectors.fusion import CALL, SESSION, Part, Refitted, shipped
from theodolite.stats.conformal import least
from theodolite.stats.e_process import Maxima

__all__ = ("Terms", "calibrated", "measured", "parts_in", "population")

# Folds of which the sessions are used to fit coefficients, and so for no threshold.
_FITTED = 2
# Clean sessions that are above a `high` score, and below a `low` one, where the population is what it was. Our choice.
_HIGH, _LOW = 0.1, 0.25
# Clean sessions of an agent, and of a model, without which the artefact is STALE for it. Our choice: with ten a kind of
# session that is the rule there was most likely seen; a promise of its own takes `least(alpha)`, as for any slice.
_VOUCHED = 10
# How much lower than its own a threshold may be before somebody should look at the sessions. Our choice.
_ALIKE = 4.0
# Clean sessions that may name no agent in an artefact that vouches for the others. Our choice.
_NAMELESS = 0.1
# Slices that a warning names: all of them are in the assessments. Our choice.
_NAMED = 8
# What the e-value of the probes is told by.
_PROBES = "behavior.session"


class Terms(Struct, frozen=True, kw_only=True):
    """For whom it is fitted, to what, and at what share of false alarms.

    `bands` are the detectors' own. `probed`: the sessions were put probes. `reference`: what comes of it is to be
    shipped, and vouches for nobody.
    """

    id: str
    date: str
    alpha: float
    dataset: Dataset
    bands: Mapping[str, Band]
    versions: Mapping[str, str]
    library: str
    probes: str = ""
    probed: bool = False
    reference: bool = False

    def share(self, code: str) -> float:
        """Return the alpha of a code: of the two that act half each, together alpha; of what is only shown all."""
        return self.alpha / 2 if code in {CALL, SESSION} else self.alpha


def calibrated(table: Table, terms: Terms) -> Calibration:
    """Return the artefact that these sessions support, and in its warnings what they do not.

    Coefficients are fitted where there are enough sessions for it: to those of two folds, and thresholds then to the
    clean ones of the other three, so that they are exchangeable with new ones. Where nothing is gained by it, the score
    is the one that was there before, and all clean sessions are for thresholds. Without the extra `calibrate` none is
    fitted. Writes fused scores into the table. Linear in the sessions, but for sorting.
    """
    warnings: list[str] = []
    clean = table.rows(Known.CLEAN)
    fitting, left = _split(table, clean, terms)
    try:
        parts = parts_of(table, shipped().base, parts_in(terms.bands), fitting)
        tuning = tuned(table, fitting) if terms.probed else ESTIMATES
    except MissingExtraError as error:
        parts, tuning = {}, ESTIMATES
        fitting = ()
        warnings.append(f"no coefficient was fitted: {error}")
    rows = left if parts or tuning.fitted else clean
    put_fused(table, shipped().base, parts)
    put_probes(table, tuning)
    maxima = weighed(table, rows) if rows else None
    if maxima is not None:
        put_sessions(table, maxima, _PROBES)
    thresholds = dict(_thresholds(table, rows, terms, warnings))
    bands = {code: _band(table, code, threshold, terms, warnings) for code, threshold in thresholds.items()}
    # What is not used of a threshold is not told of it: who shows it holds the one against the other.
    thresholds = {code: replace(threshold, strong=bands[code].strong) for code, threshold in thresholds.items()}
    tuning = _thresholded(bands, tuning)
    if terms.probed:
        tuning = counted(table, fitting, rows, tuning, terms.alpha)
    coefficients = dict(_coefficients(bands, parts, maxima, tuning, terms))
    status = _status(table, thresholds, terms, warnings)
    warnings += _estimated(tuning) if terms.probed else ()
    assessments = tuple(_assessments(table, thresholds, bands, terms))
    warnings += _unseen(table)
    warnings += _strangers(table)
    warnings += _few(assessments, terms)
    return Calibration(
        schema=1,
        id=terms.id,
        status=status,
        alpha=terms.alpha,
        date=terms.date,
        dataset=terms.dataset,
        versions=dict(sorted(terms.versions.items())),
        bands=bands,
        agents=_named(table.agents),
        models=_named(table.models),
        library=terms.library,
        probes=terms.probes,
        thresholds=thresholds,
        rests=_rests(bands, parts, terms),
        coefficients=coefficients,
        population=population(CALL, [table.scores(CALL)[row] for row in rows]),
        assessments=assessments,
        warnings=tuple(warnings),
    ).signed()


def _named(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Return the agents or models with enough clean sessions to vouch for them."""
    return tuple(sorted(name for name, count in counts.items() if name and count >= _VOUCHED))


def _unseen(table: Table) -> Iterator[str]:
    """Say in how many sessions the base of the fused score could not look: what it did not see counts as 0."""
    base = shipped().base.partition(".")[0]
    if table.failed[base]:
        yield f"{base}: in {table.failed[base]:,} of {len(table):,} sessions something was not shown, and counts as 0"


def _strangers(table: Table) -> Iterator[str]:
    """Say which agents and models have too few clean sessions for an artefact to vouch for them."""
    for what, counts in (("agents", table.agents), ("models", table.models)):
        few = sorted(f"{name} ({count:,})" for name, count in counts.items() if name and count < _VOUCHED)
        if few:
            yield (
                f"it does not vouch for {what} with fewer than {_VOUCHED} clean sessions: {', '.join(few[:_NAMED])}"
                f"{' and others' if len(few) > _NAMED else ''}"
            )


def _coefficients(
    bands: Mapping[str, Band], parts: Mapping[str, Part], maxima: Maxima | None, tuning: Tuning, terms: Terms
) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield what each detector takes in place of its own."""
    weighs = maxima is not None and maxima.n >= least(terms.share(SESSION))
    if CALL in bands or parts:
        refitted = Refitted(
            alert=bands[CALL].alert if CALL in bands else shipped().alert,
            parts=dict(parts),
            maxima=maxima if weighs else None,
            alpha=terms.share(SESSION) if weighs else None,
            source=bands[CALL].source if CALL in bands else shipped().source,
        )
        yield "fusion", msgspec.to_builtins(refitted)
    if given := tuning.coefficients():
        yield "behavior", given


def _thresholded(bands: Mapping[str, Band], tuning: Tuning) -> Tuning:
    """Return the numbers of probes with the thresholds of their codes, by which a session counts those that differ."""
    found = {kind: bands[code_of(kind)] for kind in ProbeType if code_of(kind) in bands}
    if not found:
        return tuning
    given = tuning.coefficients()
    given["thresholds"] = {
        kind.value: found[kind].alert if kind in found else estimate for kind, estimate in ESTIMATES.thresholds.items()
    }
    given["ambiguity_band"] = max(band.width for band in found.values())
    return Tuning.of(given)


def _rests(bands: Mapping[str, Band], parts: Mapping[str, Part], terms: Terms) -> dict[str, tuple[str, ...]]:
    """Return the detectors whose scores the codes of the fusion are made of."""
    calls = {code.partition(".")[0] for code in (shipped().base, *parts)}
    processes = {_PROBES.partition(".")[0]} if terms.probed else set[str]()
    rests = {CALL: calls, SESSION: calls | processes}
    return {code: tuple(sorted(rests[code] & terms.versions.keys())) for code in rests if code in bands}


def _estimated(tuning: Tuning) -> Iterator[str]:
    """Say which numbers of the probes these sessions say nothing of."""
    names = [name for name in Tuning.__struct_fields__ if name not in {"fitted", "thresholds", "ambiguity_band"}]
    left = [name for name in names if name not in tuning.fitted]
    if left:
        yield (
            f"behavior: {', '.join(left)} stay estimates, UNCALIBRATED: to fit them takes {FEWEST_DRIFTED} drifted "
            "sessions that were probed, and as many clean ones, in two folds of five, and what they are about has to "
            "have been seen"
        )


def _split(table: Table, clean: Rows, terms: Terms) -> tuple[Rows, Rows]:
    """Return the sessions that coefficients are fitted to, and the clean ones that are left for thresholds."""
    fitting = [row for row in range(len(table)) if table.fold(row) < _FITTED]
    left = [row for row in clean if table.fold(row) >= _FITTED]
    drifted = sum(not table.clean(row) for row in fitting)
    # Of what is left one fold after the other is held back once more, to confirm the rate.
    largest = max(len(fold) for fold in table.folds(left))
    enough = len(left) - largest >= least(terms.share(CALL))
    return (fitting, left) if enough and drifted >= FEWEST_DRIFTED else ((), clean)


def parts_in(bands: Mapping[str, Band]) -> tuple[str, ...]:
    """Return the codes that a fusion may hear of a call: its base, and those that may raise its score."""
    return tuple([code for code in measured(bands) if code not in {CALL, SESSION, _PROBES}])


def measured(bands: Mapping[str, Band]) -> Iterator[str]:
    """Yield the codes of which the score is measured: neither exact, nor a rule that holds or does not."""
    for code, band in sorted(bands.items()):
        if band.status is not Status.EXACT and band.alert < 1.0:
            yield code


def _thresholds(table: Table, rows: Rows, terms: Terms, warnings: list[str]) -> Iterator[tuple[str, Threshold]]:
    for code in measured(terms.bands):
        alpha = terms.share(code)
        if code == SESSION:
            # With fewer the calls are weighed against the sessions that ship, which are of another kind.
            if terms.probed and len(rows) >= least(alpha):
                yield code, _of_sessions(table, rows, alpha)
        elif code in table.codes and code != _PROBES:
            threshold = fitted(code, table, rows, alpha)
            if threshold is None:
                warnings.append(
                    f"{code}: {len(rows):,} clean sessions are too few for alpha = {alpha:g}, which takes "
                    f"{least(alpha):,}: its threshold is that of the detector"
                )
            else:
                yield code, threshold


def _of_sessions(table: Table, rows: Rows, alpha: float) -> Threshold:
    """Return the threshold of whole sessions, which no data give: an e-process reaches 1 / alpha at most so often."""
    told = Threshold(
        alert=1.0 - alpha, strong=1.0 - alpha / STRONGER, alpha=alpha, n=len(rows), out_of_fold=0, judged=0, low=0.0
    )
    return sessions_held_back(table, _PROBES, rows, told)


def _band(table: Table, code: str, threshold: Threshold, terms: Terms, warnings: list[str]) -> Band:
    own = terms.bands[code]
    source = _source(threshold.n, threshold.alpha)
    if threshold.alert > 1.0:
        warnings.append(
            f"{code}: more than a share of {threshold.alpha:g} of the clean sessions have the highest score there is: "
            "it cannot alarm at this alpha, and is only shown"
        )
        return Band(alert=1.0, acts=False, finds=False, source=source)
    if own.acts and code == CALL and threshold.alert < own.alert / _ALIKE:
        warnings.append(
            f"{code}: it alarms from {threshold.alert:.3g} on, and by itself from {own.alert:.3g}: these sessions are "
            "much alike, and a new one that is not will alarm. Take more of them, of every kind"
        )
    strong = threshold.strong if own.strong is not None or code == CALL else None
    width, scores = own.width, table.scores(code)
    if width and len(table.rows(Known.DRIFTED)) >= FEWEST_DRIFTED:
        width = ambiguity(threshold.alert, scores, table)
    elif width:  # what it may change nobody knows, and what it costs is known
        width = min(width, affordable(threshold.alert, scores, table))
    return Band(
        alert=threshold.alert,
        strong=None if strong is None or strong > 1.0 else max(strong, threshold.alert),
        width=width,
        acts=own.acts,
        finds=own.finds,
        source=source,
    )


def _source(n: int, alpha: float) -> str:
    return f"conformal quantile of the session maximum: at most {alpha:.3%} of clean sessions reach it; {n:,} of them"


def _status(table: Table, thresholds: Mapping[str, Threshold], terms: Terms, warnings: list[str]) -> Status:
    """Return whether the artefact vouches for agents and models; if not, the warnings say why."""
    faults: list[str] = []
    if not _named(table.agents) or not _named(table.models):
        faults.append(
            "its sessions name no agent or no model, and it vouches for those that they name: if you know, say "
            "--agent and --agent-model"
        )
    clean = len(table.rows(Known.CLEAN))
    if table.agents[""] > clean * _NAMELESS:
        faults.append(
            f"{table.agents['']:,} of {clean:,} clean sessions name no agent, and thresholds are of them all: if you "
            "know, say --agent"
        )
    acting = [code for code in (CALL, SESSION) if code in thresholds] or [CALL]
    for code in acting:
        if code not in thresholds:
            faults.append(f"{code}, which acts, has no threshold of its own")
        elif not thresholds[code].tried:
            faults.append(
                f"{code}: {thresholds[code].judged:,} clean sessions could be held back to confirm the rate, each with "
                f"those of its task, and that takes {least(thresholds[code].alpha):,}"
            )
        elif not thresholds[code].confirmed:
            one = thresholds[code]
            faults.append(
                f"{code}: {one.out_of_fold:,} of {one.judged:,} held-back clean sessions alarmed, more than chance "
                f"makes of alpha = {one.alpha:g}"
            )
    for code, one in thresholds.items():
        if code not in acting and one.tried and not one.confirmed:
            warnings.append(
                f"{code}: {one.out_of_fold:,} of {one.judged:,} held-back clean sessions alarmed, more than chance "
                f"makes of alpha = {one.alpha:g}: it is graded REFERENCE"
            )
    if terms.reference:
        return Status.REFERENCE
    warnings += [f"not CALIBRATED: {fault}" for fault in faults]
    return Status.REFERENCE if faults else Status.CALIBRATED


def population(code: str, scores: Iterable[float]) -> Population | None:
    """Return where the highest scores of clean sessions lay; None of none."""
    held = sorted(scores)
    if not held:
        return None
    # By rank, and not as they compare: the bounds of `stats.shift` are for ranks, also where many are equal.
    above, below = min(len(held) - 1, int(len(held) * (1 - _HIGH))), int(len(held) * _LOW)
    over = len(held) - 1 - above
    return Population(code=code, n=len(held), high=held[above], over=over, low=held[below], under=below)


def _assessments(
    table: Table, thresholds: Mapping[str, Threshold], bands: Mapping[str, Band], terms: Terms
) -> Iterator[Assessment]:
    for code, band in bands.items():
        width = band.width if terms.bands[code].width else None
        # That of the threshold: where it is over 1 nothing alarms, and what reaches 1 is only shown.
        yield assess(code, thresholds[code].alert, table, terms.share(code), width=width)


def _few(assessments: Sequence[Assessment], terms: Terms) -> Iterator[str]:
    """Say in which slices there are too few clean sessions to say anything of alpha."""
    for one in assessments:
        few = [f"{part.name} ({part.false_alarms.n:,})" for part in one.slices if not part.enough]
        if one.code == CALL and few:
            yield (
                f"{one.code}: alpha = {terms.share(CALL):g} takes {least(terms.share(CALL)):,} clean sessions, and "
                f"{len(few):,} of {len(one.slices):,} slices have fewer: {', '.join(few[:_NAMED])}"
                f"{' and others' if len(few) > _NAMED else ''}"
            )
