"""What there is to tell of an artefact, part by part and in order, for a terminal and for a page alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from theodolite.core.calibration import Calibration, Dataset
from theodolite.core.gate import Gate, Shown
from theodolite.core.reading import Status
from theodolite.reports.calibration.coefficients import leaves
from theodolite.reports.calibration.figures import amount, more, number, whole
from theodolite.reports.calibration.rates import ambiguity, rates, slices, thresholds
from theodolite.reports.escaping import inert
from theodolite.reports.layout import Block, Heading, Paragraph, Span, Style, Table, counted
from theodolite.reports.limits import NAME, PARTS, PATH, QUOTE
from theodolite.reports.words import TRANSFER

__all__ = ("Part", "blocks", "listed", "parts", "standing", "title")

# Of a longer list of names the first are told.
_NAMED = 10
# Slices of one code that a terminal shows.
_ROWS = PARTS


class Part(Struct, frozen=True):
    """A part of what is told: its name on a page, its title, and what stands in it."""

    name: str
    title: str
    blocks: tuple[Block, ...]


def blocks(artefact: Calibration) -> Iterator[Block]:
    """Yield an artefact for a terminal: what it is, what limits it, what it rests on, what its thresholds do."""
    status, *rest = standing(artefact)
    yield Heading((Span(title(artefact), Style.STRONG),))
    yield Paragraph((Span(status, _TONES[artefact.status]),))
    yield from [Paragraph((Span(line),)) for line in rest]
    for part in parts(artefact):
        yield Heading((Span(part.title, Style.STRONG),))
        yield from part.blocks


_TONES = {Status.CALIBRATED: Style.GOOD, Status.REFERENCE: Style.WARN}


def title(artefact: Calibration) -> str:
    """Return the name of an artefact and when it was fitted, inert."""
    return f"{inert(artefact.id, NAME) or '(no name)'}, fitted on {inert(artefact.date, NAME) or 'no day that it says'}"


def standing(artefact: Calibration) -> Iterator[str]:
    """Yield in sentences what an artefact vouches for and what that allows; the first has its status."""
    if artefact.status is Status.REFERENCE:
        yield "REFERENCE: it grades, and an alarm may ask for review. It cannot restrict a session."
        yield TRANSFER
        return
    agents = f"agent{'s' * (len(artefact.agents) != 1)} {listed(artefact.agents)}"
    models = f"model{'s' * (len(artefact.models) != 1)} {listed(artefact.models)}"
    yield f"CALIBRATED: it was fitted on sessions of {agents} with {models}, and vouches for no other."
    yield "In a session of another agent, model or detector version its thresholds are STALE, and only ask for review."
    acting = {code: band for code, band in artefact.bands.items() if band.acts}
    strong = [code for code, band in acting.items() if band.strong is not None and artefact.vouches(code)]
    if strong:
        yield f"A strong alarm of {listed(strong)} may restrict a session."
    else:
        yield "No alarm may restrict a session: of no code that acts is there a confirmed rate and a strong threshold."
    unsure = [code for code in artefact.bands if not artefact.vouches(code)]
    if unsure:
        yield f"Held-back folds do not confirm {listed(unsure)}: graded as REFERENCE, which cannot restrict."


def parts(artefact: Calibration, rows: int = _ROWS) -> Iterator[Part]:
    """Yield what an artefact has, part by part; of a code at most so many slices.

    Its warnings come first, since they limit what all that follows says. The last part says what it has not.
    """
    held = [
        Part("limits", "What limits what it says", tuple(_warnings(artefact.warnings))),
        Part("basis", "What it rests on", tuple(_basis(artefact))),
        Part("thresholds", "Thresholds", tuple(thresholds(artefact))),
        Part("rates", "Rates in its data, with intervals of 95 %", tuple(rates(artefact))),
        *[
            Part(f"slices{number}", f"Slices of {inert(code, NAME)}, with intervals of 95 %", tuple(told))
            for number, (code, told) in enumerate(slices(artefact, rows), 1)
        ],
        Part("opinion", "Where a second opinion is asked for, with intervals of 95 %", tuple(ambiguity(artefact))),
        Part("coefficients", "Coefficients", tuple(_coefficients(artefact.coefficients))),
        Part("population", "The population that is watched", tuple(_population(artefact))),
        Part("gates", "Models that were measured", tuple(_gates(artefact.gates.values()))),
        Part("absent", "What it has not", tuple(_absent(artefact))),
    ]
    yield from [part for part in held if part.blocks]


def listed(names: Iterable[str]) -> str:
    """Return names one after the other, inert, the first ten."""
    every = list(names)
    rest = f" and {len(every) - _NAMED:,} more" if len(every) > _NAMED else ""
    return ", ".join([inert(name, NAME) or "(no name)" for name in every[:_NAMED]]) + rest


def _warnings(warnings: Iterable[str]) -> Iterator[Block]:
    every = list(warnings)
    for text in every[:PARTS]:
        yield Paragraph((Span("- "), Span(inert(text, QUOTE), Style.WARN)))
    yield from more(len(every) - PARTS, "warning")


def _basis(artefact: Calibration) -> Iterator[Block]:
    versions = [f"{inert(name, NAME)} {inert(version, NAME)}" for name, version in artefact.versions.items()]
    rest = f" and {len(versions) - PARTS:,} more" if len(versions) > PARTS else ""
    yield _fact("sessions:", _dataset(artefact.dataset))
    yield _fact("alpha:", f"{whole(artefact.alpha)} of clean sessions may alarm")
    if artefact.status is Status.REFERENCE and (artefact.agents or artefact.models):
        yield _fact("agents:", listed(artefact.agents) or "none named")
        yield _fact("models:", listed(artefact.models) or "none named")
    yield _fact("detectors:", (", ".join(versions[:PARTS]) or "none") + rest)
    if artefact.probes:
        yield _fact("probes:", f"library {inert(artefact.probes, NAME)}")
    changed = bool(artefact.digest) and artefact.digest != artefact.signed().digest
    yield _fact("written:", _written(artefact, changed=changed), Style.WARN if changed else Style.PLAIN)


def _fact(label: str, text: str, style: Style = Style.PLAIN) -> Paragraph:
    return Paragraph((Span(f"{label:<11}", Style.QUIET), Span(text, style)), hang=11)


def _dataset(dataset: Dataset) -> str:
    told = [inert(dataset.name, QUOTE) or "no name"]
    told += [f"version {inert(dataset.version, NAME)}"] if dataset.version else []
    counts = [f"{inert(label, NAME)} {amount(count)}" for label, count in list(dataset.counts.items())[:PARTS]]
    told += [", ".join(counts) or "not counted"]
    told += [f"SHA-256 {inert(dataset.sha256, 64)}"] if dataset.sha256 else []
    return "; ".join(told)


def _written(artefact: Calibration, *, changed: bool) -> str:
    by = f"by theodolite {inert(artefact.library, NAME)}" if artefact.library else "by hand, or it does not say by what"
    if not artefact.digest:
        return f"{by}; it has no digest, so that a change of it does not show"
    return f"{by}; {'CHANGED since: the digest does not fit' if changed else 'not changed since, by its digest'}"


def _coefficients(by_detector: Mapping[str, Mapping[str, object]]) -> Iterator[Block]:
    for detector, held in list(by_detector.items())[:PARTS]:
        yield Paragraph((Span(inert(detector, NAME) or "(no name)", Style.STRONG),))
        found = leaves(held)
        rows = tuple([(Span(inert(name, PATH)), Span(inert(value, NAME))) for name, value in found[:PARTS]])
        yield Table(("name", "value"), rows, 4) if rows else Paragraph((Span("none", Style.QUIET),), 4)
        yield from more(len(found) - PARTS, "value")
    yield from more(len(by_detector) - PARTS, "detector")


def _population(artefact: Calibration) -> Iterator[Block]:
    seen = artefact.population
    if seen is not None:
        over = f"at most {amount(seen.over)} had a highest score of {inert(seen.code, NAME)} above {number(seen.high)}"
        under = f"at most {amount(seen.under)} one below {number(seen.low)}"
        told = "Where monitored sessions differ from that, it is time to calibrate anew; it is no drift of an agent."
        yield Paragraph((Span(f"Of {amount(seen.n)} clean sessions {over}, and {under}. {told}"),))


def _gates(gates: Iterable[Gate]) -> Iterator[Block]:
    every = list(gates)
    for gate in every[:PARTS]:
        verdict = Span("can be measured", Style.GOOD) if gate.passed else Span("cannot be measured", Style.BAD)
        yield Paragraph((Span(inert(gate.model, NAME), Style.STRONG), Span(" "), verdict, Span(f": {_figures(gate)}")))
    yield from more(len(every) - PARTS, "model")


def _figures(gate: Gate) -> str:
    by = "by its probabilities" if gate.shown is Shown.PROBABILITIES else f"by {counted(gate.samples, 'draw')} each"
    system = f"system prompt {inert(gate.prompt_hash[:12])}" if gate.prompt_hash else "no system prompt"
    figures = f"{counted(gate.pairs, 'pair')} {by}, AUC {gate.auc:.3f}, gap {gate.gap:+.3g} in log-odds"
    reasons = "".join(f" {reason.words}" for reason in gate.reasons)
    return f"{figures}, {system}, {inert(gate.date, NAME)}.{reasons}"


def _absent(artefact: Calibration) -> Iterator[Block]:
    lacks = {
        "thresholds: each code is graded by its detector's own": not artefact.bands,
        "what held-back folds say of its thresholds": artefact.bands and not artefact.thresholds,
        "rates: how often it alarms without reason was not measured": not artefact.assessments,
        "coefficients: each detector keeps its own": not artefact.coefficients,
        "a population to watch": artefact.population is None,
        "models that were measured": not artefact.gates,
    }
    for what, lacking in lacks.items():
        if lacking:
            yield Paragraph((Span(f"- {what}", Style.QUIET),))
