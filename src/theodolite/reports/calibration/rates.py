"""What the thresholds of an artefact are and what they do on its data, in tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from theodolite.core.assessment import Assessment, Share, Slice, Threshold
from theodolite.core.calibration import Band, Calibration
from theodolite.reports.calibration.figures import amount, missing, more, number, out_of_fold, share, whole
from theodolite.reports.escaping import inert
from theodolite.reports.layout import Block, Paragraph, Span, Style, Table
from theodolite.reports.limits import NAME, PARTS, QUOTE

__all__ = ("alpha_of", "ambiguity", "assessed", "parted", "rates", "slices", "thresholds")

# What a report on calls is mostly about, and so comes first.
_FIRST = "fusion.call"


def thresholds(artefact: Calibration) -> Iterator[Block]:
    """Yield the thresholds of each code, and what held-back folds say of them."""
    codes = list(dict.fromkeys([*artefact.bands, *artefact.thresholds]))
    head = ("code", "alert", "strong", "acts", "alpha", "clean", "alarms out of fold (95 %)", "rate")
    rows = [_threshold(code, artefact.bands.get(code), artefact.thresholds.get(code)) for code in codes[:PARTS]]
    if rows:
        yield Table(head, tuple(rows))
    yield from more(len(codes) - PARTS, "code")
    for code, band in list(artefact.bands.items())[:PARTS]:
        if band.source and code not in artefact.thresholds:
            yield Paragraph((Span(f"{inert(code, NAME)} rests on: ", Style.QUIET), Span(inert(band.source, QUOTE))))
    if artefact.thresholds:
        told = (
            "Alpha is the share of clean sessions that each code may alarm in; clean, how many there were. Out of fold "
            "are sessions that the threshold was fitted without, and without those of their task."
        )
        yield Paragraph((Span(told, Style.QUIET),))


def _threshold(code: str, band: Band | None, fitted: Threshold | None) -> tuple[Span, ...]:
    alert, strong = (None, None) if band is None else (band.alert, band.strong)
    if band is None and fitted is not None:
        alert, strong = fitted.alert, fitted.strong
    cells = (
        Span(inert(code, NAME)),
        Span("" if alert is None else number(alert)),
        Span("never" if strong is None else number(strong)),
        Span("yes" if band is not None and band.acts else "no"),
    )
    if fitted is None:
        return (*cells, Span(""), Span(""), Span(""), Span("not fitted", Style.QUIET))
    return (
        *cells,
        Span(whole(fitted.alpha)),
        Span(amount(fitted.n)),
        Span(out_of_fold(fitted)),
        _word(band, fitted),
    )


def _word(band: Band | None, fitted: Threshold) -> Span:
    if band is None:
        return Span("not in use: it has no band", Style.WARN)
    if fitted.alert > 1.0 and (band.alert, band.strong, band.acts) == (1.0, None, False):
        return Span("cannot alarm at this alpha", Style.WARN)
    if (band.alert, band.strong) != (fitted.alert, fitted.strong):
        was = number(fitted.alert) + ("" if fitted.strong is None else f" and {number(fitted.strong)}")
        return Span(f"set by hand: fitted was {was}", Style.WARN)
    if fitted.confirmed:
        return Span("confirmed", Style.GOOD)
    return Span("not confirmed: above alpha" if fitted.judged else "not confirmed: no fold was judged", Style.BAD)


def assessed(artefact: Calibration) -> list[Assessment]:
    """Return what was measured: `fusion.call` first, then the codes that act, then the others."""

    def place(one: Assessment) -> tuple[bool, bool]:
        return one.code != _FIRST, not _acts(artefact, one.code)

    return sorted(artefact.assessments, key=place)


def alpha_of(artefact: Calibration, code: str) -> float:
    """Return the alpha of a code: its own share where it has one."""
    fitted = artefact.thresholds.get(code)
    return artefact.alpha if fitted is None else fitted.alpha


def rates(artefact: Calibration) -> Iterator[Block]:
    """Yield what each threshold does in the data of the artefact as a whole."""
    every = assessed(artefact)
    if not every:
        return
    head = ("code", "from", "false alarms", "found", "precision", "AUC")
    yield Table(head, tuple([_rates(one, alpha_of(artefact, one.code)) for one in every[:PARTS]]))
    yield from more(len(every) - PARTS, "code")
    if artefact.thresholds:
        fitted = "The thresholds were fitted on these sessions: what new ones do is told by the alarms out of fold. "
        yield Paragraph((Span(fitted, Style.QUIET),))
    told = "Precision depends on how many sessions of each kind are in the data: in production drift is rarer."
    yield Paragraph((Span(told, Style.QUIET),))


def _rates(one: Assessment, alpha: float) -> tuple[Span, ...]:
    seen = one.whole
    return (
        Span(inert(one.code, NAME)),
        Span(number(one.alert)),
        _alarms(seen.false_alarms, alpha),
        Span(share(seen.found)),
        Span(share(seen.precision)),
        Span("" if one.auc is None else f"{one.auc:.3f}"),
    )


def _alarms(found: Share, alpha: float) -> Span:
    return Span(share(found), Style.WARN if found.n and found.low > alpha else Style.PLAIN)


def slices(artefact: Calibration, rows: int) -> Iterator[tuple[str, list[Block]]]:
    """Yield the slices of each code that acts."""
    acting = [one for one in assessed(artefact) if one.slices and _acts(artefact, one.code)]
    for one in acting[:PARTS]:
        yield one.code, list(parted(one.slices, alpha_of(artefact, one.code), rows))


def parted(every: Sequence[Slice], alpha: float, rows: int) -> Iterator[Block]:
    """Yield a table of slices, at most so many rows; those with too few clean sessions for alpha say so."""
    # What is wrong with some must not be what is left out.
    kept = sorted(every, key=lambda part: not _exceeds(part.false_alarms, alpha))[:rows]
    head = ("slice", "false alarms", "found", "precision", f"alpha {whole(alpha)}")
    yield Table(head, tuple([_slice(part, alpha) for part in kept]))
    yield from more(len(every) - len(kept), "slice")
    if len(every) > 1:
        told = "Where many slices are compared, which of them is worst is mostly chance."
        yield Paragraph((Span(told, Style.QUIET),))


def _slice(part: Slice, alpha: float) -> tuple[Span, ...]:
    return (
        Span(inert(part.name, NAME)),
        _alarms(part.false_alarms, alpha),
        Span(share(part.found)),
        Span(share(part.precision)),
        _enough(part, alpha),
    )


def _enough(part: Slice, alpha: float) -> Span:
    above = _exceeds(part.false_alarms, alpha)
    if part.enough:
        return Span("above it", Style.BAD) if above else Span("may hold")
    lacking = missing(alpha, part.false_alarms.n)
    few = f"too few clean sessions{f': {amount(lacking)} missing' if lacking else ''}"
    return Span(f"above it, {few}", Style.BAD) if above else Span(few, Style.WARN)


def _exceeds(found: Share, alpha: float) -> bool:
    return found.n > 0 and found.low > alpha


def ambiguity(artefact: Calibration) -> Iterator[Block]:
    """Yield in how many sessions a second opinion is asked for, and what it could change."""
    asking = [one for one in assessed(artefact) if one.ambiguity is not None]
    rows = [
        (
            Span(inert(one.code, NAME)),
            Span(f"{number(one.alert)} \N{PLUS-MINUS SIGN} {number(seen.width)}"),
            Span(share(seen.asked)),
            Span(share(seen.changed)),
        )
        for one in asking[:PARTS]
        if (seen := one.ambiguity) is not None
    ]
    if rows:
        yield Table(("code", "scores", "sessions in which it is asked for", "of these it could correct"), tuple(rows))
        yield from more(len(asking) - PARTS, "code")
        told = "It could correct those that the threshold alone judges wrongly, if it is always right."
        yield Paragraph((Span(told, Style.QUIET),))


def _acts(artefact: Calibration, code: str) -> bool:
    """Whether alarms of a code may act; of one without a band in the artefact that is not known, and it may."""
    band = artefact.bands.get(code)
    return band is None or band.acts
