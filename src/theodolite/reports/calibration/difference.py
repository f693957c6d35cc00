"""What differs between two artefacts: what was, what is, and what that means for who is watched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import groupby
from typing import Literal, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.core.assessment import Assessment, Share, Slice, Threshold
from theodolite.core.calibration import Calibration
from theodolite.reports.calibration.coefficients import atom, places
from theodolite.reports.calibration.figures import more, share
from theodolite.reports.escaping import inert
from theodolite.reports.layout import Block, Heading, Paragraph, Span, Style, Table, counted
from theodolite.reports.limits import NAME, PARTS

__all__ = ("Change", "Differences", "Matter", "blocks", "differences")


class Matter(StrEnum):
    """What of an artefact a change is about."""

    IDENTITY = "identity"
    DATA = "data"
    VERSIONS = "versions"
    COVERED = "covered"
    WARNINGS = "warnings"
    THRESHOLDS = "thresholds"
    RATES = "rates"
    COEFFICIENTS = "coefficients"
    POPULATION = "population"
    GATES = "gates"


class Change(Struct, frozen=True, kw_only=True):
    """One difference: of what, what was there and what is, None for nothing, and what that means.

    `before` and `after` are values as an artefact has them; `name` is a code, a detector or the like, `detail` what of
    it changed.
    """

    about: Matter
    name: str
    detail: str = ""
    before: object = None
    after: object = None
    effect: str = ""


class Differences(Struct, frozen=True, kw_only=True):
    """All differences between two artefacts, by what they are about; none where both say the same."""

    schema: Literal[1] = 1
    before: str
    after: str
    changes: tuple[Change, ...] = ()


_Place: TypeAlias = tuple[Matter, str, str]
_Held = TypeVar("_Held")
_NOTHING = object()


def differences(before: Calibration, after: Calibration) -> Differences:
    """Return how an artefact differs from an earlier one.

    There are none exactly where both say the same, in whatever order they say it: their digests are not compared.
    Linear in what they hold.

    >>> from msgspec.structs import replace
    >>> from theodolite.core.calibration import Band, Dataset
    >>> from theodolite.core.reading import Status
    >>> one = Calibration(
    ...     schema=1, id="a", status=Status.REFERENCE, alpha=0.05, date="2026-11-30", dataset=Dataset(name="d"),
    ...     versions={}, bands={"d.x": Band(alert=0.5)},
    ... )
    >>> [found] = differences(one, replace(one, bands={"d.x": Band(alert=0.25)})).changes
    >>> found.name, found.before, found.after, found.effect
    ('d.x', 0.5, 0.25, 'alarms earlier')
    """
    was, now = dict(_facts(before)), dict(_facts(after))
    changed = [
        place for place in dict.fromkeys([*was, *now]) if _differ(was.get(place, _NOTHING), now.get(place, _NOTHING))
    ]
    order = {matter: number for number, matter in enumerate(Matter)}
    changes = [
        Change(
            about=place[0],
            name=place[1],
            detail=place[2],
            before=was.get(place),
            after=now.get(place),
            effect=_effect(place, was.get(place), now.get(place)),
        )
        for place in sorted(changed, key=lambda place: order[place[0]])
    ]
    return Differences(before=before.id, after=after.id, changes=tuple(changes))


def _differ(was: object, now: object) -> bool:
    # To Python a truth value is a number, to JSON it is not.
    return was != now or isinstance(was, bool) is not isinstance(now, bool)


def _facts(artefact: Calibration) -> Iterator[tuple[_Place, object]]:
    """Yield what an artefact says, each by its place."""
    for name in ("id", "status", "alpha", "date", "library", "probes"):
        yield (Matter.IDENTITY, name, ""), getattr(artefact, name)
    data = artefact.dataset
    yield from [((Matter.DATA, name, ""), getattr(data, name)) for name in ("name", "version", "sha256")]
    yield from [((Matter.DATA, label, "sessions"), count) for label, count in data.counts.items()]
    yield from [((Matter.VERSIONS, name, ""), version) for name, version in artefact.versions.items()]
    yield from [((Matter.VERSIONS, code, "rests on"), ", ".join(names)) for code, names in artefact.rests.items()]
    yield from [((Matter.COVERED, name, "agent"), True) for name in artefact.agents]
    yield from [((Matter.COVERED, name, "model"), True) for name in artefact.models]
    yield from [((Matter.WARNINGS, text, ""), True) for text in artefact.warnings]
    for code, band in artefact.bands.items():
        yield from [((Matter.THRESHOLDS, code, field), value) for field, value in asdict(band).items()]
    for code, threshold in artefact.thresholds.items():
        yield from _fit(code, threshold)
    named = _each([(one.code, one) for one in artefact.assessments])
    yield from [fact for code, one in named for fact in _rates(code, one)]
    held = places(artefact.coefficients) if artefact.coefficients else {}
    yield from [((Matter.COEFFICIENTS, path, ""), value) for path, value in held.items()]
    yield from [((Matter.POPULATION, name, ""), value) for name, value in _fields(artefact.population)]
    for model, gate in artefact.gates.items():
        yield from [((Matter.GATES, model, field), value) for field, value in _fields(gate)]


def _fit(code: str, fitted: Threshold) -> Iterator[tuple[_Place, object]]:
    for field, value in asdict(fitted).items():
        yield (Matter.THRESHOLDS, code, f"fitted {field.replace('_', ' ')}"), value
    yield (Matter.THRESHOLDS, code, "confirmed"), fitted.confirmed


def _rates(code: str, one: Assessment) -> Iterator[tuple[_Place, object]]:
    for field, value in (("alert", one.alert), ("AUC", one.auc), ("curve", one.curve), ("bins", one.bins)):
        yield (Matter.RATES, code, field), value
    yield from [((Matter.RATES, code, f"ambiguity {field}"), value) for field, value in _fields(one.ambiguity)]
    yield from _slice(code, one.whole)
    for name, part in _each([(part.name, part) for part in one.slices]):
        yield from _slice(f"{code}, {name}", part)


def _slice(name: str, part: Slice) -> Iterator[tuple[_Place, object]]:
    for field, value in asdict(part).items():
        yield (Matter.RATES, name, field.replace("_", " ")), value


def _each(named: Iterable[tuple[str, _Held]]) -> Iterator[tuple[str, _Held]]:
    """Yield values under names of their own, where several have the same one."""
    times: dict[str, int] = {}
    for name, value in named:
        times[name] = times.get(name, 0) + 1
        yield name if times[name] == 1 else f"{name} ({times[name]})", value


def _fields(held: Struct | None) -> Iterator[tuple[str, object]]:
    if held is not None:
        yield from asdict(held).items()


def _effect(place: _Place, was: object, now: object) -> str:
    about, _, detail = place
    if about in {Matter.COVERED, Matter.WARNINGS}:
        return "gained" if now else "lost"
    if about is Matter.THRESHOLDS:
        return _meaning(detail, was, now)
    if isinstance(was, Share) and isinstance(now, Share) and was.n and now.n:
        if was.high < now.low:
            return "more, and the intervals are apart"
        return "fewer, and the intervals are apart" if now.high < was.low else "the intervals overlap"
    return ""


# What a change of a band means: where the new value is less, and where it is more.
_SENSE = {
    "alert": ("alarms earlier", "alarms later"),
    "strong": ("is strong earlier", "is strong later"),
    "width": ("a second opinion is asked for less often", "a second opinion is asked for more often"),
    "acts": ("its alarms act no more", "its alarms act from now on"),
    "finds": ("its alarms are no findings any more", "its alarms are findings from now on"),
    "confirmed": ("its rate is not confirmed any more", "its rate is confirmed now"),
}


def _meaning(detail: str, was: object, now: object) -> str:
    if isinstance(was, float | int) and isinstance(now, float | int):
        return _SENSE[detail][now > was] if detail in _SENSE else ""
    if detail == "strong":
        return "may be strong from now on" if was is None else "is never strong any more"
    if detail == "alert":
        return "is graded by the artefact from now on" if was is None else "is graded by its detector's own from now on"
    return ""


_TITLES = {
    Matter.IDENTITY: "What they are",
    Matter.DATA: "What they rest on",
    Matter.VERSIONS: "Versions of detectors",
    Matter.COVERED: "Agents and models",
    Matter.WARNINGS: "Warnings",
    Matter.THRESHOLDS: "Thresholds",
    Matter.RATES: "Rates, with intervals of 95 %",
    Matter.COEFFICIENTS: "Coefficients",
    Matter.POPULATION: "The population that is watched",
    Matter.GATES: "Models that were measured",
}


def blocks(found: Differences) -> Iterator[Block]:
    """Yield the differences for a terminal."""
    verdict = Span(counted(len(found.changes), "difference"), Style.WARN) if found.changes else _SAME
    files = f"{inert(found.before, NAME) or '(no name)'} -> {inert(found.after, NAME) or '(no name)'}: "
    yield Heading((Span(files, Style.STRONG), verdict))
    other = any(change.about is Matter.DATA for change in found.changes)
    for matter, several in groupby(found.changes, key=lambda change: change.about):
        listed = list(several)
        yield Heading((Span(_TITLES[matter], Style.STRONG),))
        if matter is Matter.RATES and other:
            told = "They were measured on different sessions, which alone can make rates differ."
            yield Paragraph((Span(told, Style.WARN),))
        if matter is Matter.WARNINGS:
            yield from [_warning(change) for change in listed[:PARTS]]
        else:
            yield Table(("what", "", "before", "after", "which means"), tuple([_row(one) for one in listed[:PARTS]]))
        yield from more(len(listed) - PARTS, "difference")


_SAME = Span("they say the same", Style.GOOD)


def _warning(change: Change) -> Paragraph:
    gained = change.effect == "gained"
    sign = Span(f"{change.effect}: ", Style.WARN if gained else Style.GOOD)
    return Paragraph((sign, Span(inert(change.name, 4 * NAME))))


def _row(change: Change) -> tuple[Span, ...]:
    was, now = _told(change.before), _told(change.after)
    if was == now:  # a difference that so few digits do not show
        was, now = (inert(str(value), NAME) for value in (change.before, change.after))
    if was == now:
        now = f"another {now}"
    name = Span(inert(change.name, NAME) or "(no name)")
    return name, Span(inert(change.detail, NAME)), Span(was), Span(now), Span(change.effect)


def _told(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, Share):
        return share(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if is_mapping(value) or is_sequence(value):
        return counted(len(value), "entry").replace("entrys", "entries")
    return inert(atom(value), NAME) or '""'
