"""What other sessions say of the rates that an artefact promises, code by code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from theodolite.core.assessment import Share, Verdict, Verified
from theodolite.core.calibration import Calibration
from theodolite.core.reading import Status
from theodolite.reports.calibration.figures import amount, missing, more, number, rate, share, whole
from theodolite.reports.calibration.parts import listed
from theodolite.reports.calibration.rates import parted
from theodolite.reports.escaping import inert
from theodolite.reports.layout import Block, Heading, Paragraph, Span, Style, Table
from theodolite.reports.limits import NAME, PARTS
from theodolite.reports.words import CALIBRATE

__all__ = ("Verification", "verdict_blocks", "verification")


class Verification(Struct, frozen=True, kw_only=True):
    """The document of a verification: the id of the artefact, what was found, and the codes that nobody looked at."""

    schema: Literal[1] = 1
    calibration: str
    verified: tuple[Verified, ...]
    unverified: tuple[str, ...] = ()


def verification(artefact: Calibration, found: Sequence[Verified]) -> Verification:
    """Return the document that says of an artefact what was found on other sessions."""
    seen = {one.code for one in found}
    left = tuple([code for code in artefact.bands if code not in seen])
    return Verification(calibration=artefact.id, verified=tuple(found), unverified=left)


def verdict_blocks(artefact: Calibration, found: Sequence[Verified]) -> Iterator[Block]:
    """Yield for a terminal what was found on other sessions: the worst first, each beside what the artefact says."""
    yield Heading((Span(f"{inert(artefact.id, NAME) or '(no name)'}: ", Style.STRONG), _outcome(found)))
    order = (Verdict.REFUTED, Verdict.TOO_FEW, Verdict.HELD)
    every = sorted(found, key=lambda one: order.index(one.verdict))
    for one in every[:PARTS]:
        yield Paragraph((Span(f"{inert(one.code, NAME)}: ", Style.STRONG), *_said(one)))
    yield from more(len(every) - PARTS, "code")
    left = verification(artefact, found).unverified
    if left:
        yield Paragraph((Span(f"not looked at: {listed(left)}", Style.QUIET),))
    if any(one.verdict is Verdict.REFUTED for one in every):
        yield Paragraph((Span(_advice(artefact), Style.WARN),))
    if every:
        yield Heading((Span("Rates, with intervals of 95 %", Style.STRONG),))
        yield from _rates(artefact, every[:PARTS])
    for one in every[:PARTS]:
        if one.assessment.slices:
            yield Heading((Span(f"Slices of {inert(one.code, NAME)}, with intervals of 95 %", Style.STRONG),))
            yield from parted(one.assessment.slices, one.alpha, PARTS)


def _outcome(found: Sequence[Verified]) -> Span:
    refuted, few = (sum(one.verdict is verdict for one in found) for verdict in (Verdict.REFUTED, Verdict.TOO_FEW))
    if refuted:
        return Span(f"refuted for {refuted:,} of {len(found):,}", Style.BAD)
    if few or not found:
        sure = f"for {few:,} of {len(found):,} the sessions are too few" if found else "no code was looked at"
        return Span(f"not refuted, but {sure}" if found else sure, Style.WARN)
    return Span("not refuted", Style.GOOD)


def _said(one: Verified) -> tuple[Span, ...]:
    alarms, promised = one.assessment.whole.false_alarms, f"alpha is {whole(one.alpha)}"
    if one.verdict is not Verdict.TOO_FEW:
        word = Span("refuted", Style.BAD) if one.verdict is Verdict.REFUTED else Span("not refuted", Style.GOOD)
        return word, Span(f": {_counted(alarms)}, and {promised}")
    lacking = missing(one.alpha, alarms.n)
    needed = f"{amount(lacking)} more are needed" if lacking else "more are needed"
    return Span("too few sessions", Style.WARN), Span(f": {_counted(alarms)}; {needed}, since {promised}")


def _counted(alarms: Share) -> str:
    return f"{rate(alarms)} clean sessions alarm" if alarms.n else "there is no clean session"


def _advice(artefact: Calibration) -> str:
    if artefact.status is Status.REFERENCE:
        return f"These sessions are not like those of the artefact. Fit thresholds to your own: `{CALIBRATE}`."
    return (
        "These sessions are not like those of the artefact: it promises nothing for them. Calibrate anew with sessions "
        "like these, or find out what changed."
    )


def _rates(artefact: Calibration, found: Sequence[Verified]) -> Iterator[Block]:
    known = {one.code: one.whole for one in reversed(artefact.assessments)}
    rows: list[tuple[Span, ...]] = []
    for one in found:
        rows.append(_row(one))
        if one.code in known:
            own = known[one.code]
            cells = (share(own.false_alarms), share(own.found), share(own.precision), "")
            rows.append(
                (Span("  in its own data", Style.QUIET), Span(""), *[Span(cell, Style.QUIET) for cell in cells])
            )
    yield Table(("code", "from", "false alarms", "found", "precision", "AUC"), tuple(rows))


def _row(one: Verified) -> tuple[Span, ...]:
    seen = one.assessment.whole
    auc = "" if one.assessment.auc is None else f"{one.assessment.auc:.3f}"
    cells = (number(one.assessment.alert), share(seen.false_alarms), share(seen.found), share(seen.precision), auc)
    return (Span(inert(one.code, NAME)), *map(Span, cells))
