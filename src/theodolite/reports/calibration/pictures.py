"""Two pictures of what was measured of a code: which alarms cost what, and how often a score is right. As SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from theodolite.core.assessment import Assessment, Bin
from theodolite.reports.calibration.figures import number, rate, ratio, whole
from theodolite.reports.escaping import inert
from theodolite.reports.limits import NAME
from theodolite.reports.markup import Markup, element

__all__ = ("HEIGHT", "WIDTH", "curve", "drawable", "filled", "reliability")

# Sizes of a picture, and where its plot begins and ends in it; what scales it is the page.
WIDTH, HEIGHT = 400, 320
_LEFT, _RIGHT, _TOP, _BASE = 46, 388, 14, 272
# More corners or bars are not told apart in it (our choice).
_POINTS, _BINS = 400, 40
# Bars that have their count beside them: of more they would run together.
_NAMED = 12
# A count that is written out beside its dot.
_LARGE = 1_000_000
# The least share that an axis begins at, and the largest: decades of false alarms.
_LEAST, _MOST = 1e-6, 0.1


def drawable(measured: Assessment) -> bool:
    """Whether there is anything to draw of what was measured."""
    return bool(measured.curve) or filled(measured)


def filled(measured: Assessment) -> bool:
    """Whether any of its bins has a session."""
    return any(ratio(one.drifted) is not None for one in measured.bins)


def curve(measured: Assessment, alpha: float, name: str) -> Markup:
    """Return the ROC curve: the share of drifted sessions that are found over that of clean ones that alarm.

    The shares of false alarms are on a logarithmic axis, whose left edge stands for none. `name` makes the ids unique.
    """
    low = _lowest(measured, alpha)
    kept = measured.curve[:: -(-len(measured.curve) // _POINTS) or 1]
    corners = [(_log(one.false_alarms, low), _height(one.found)) for one in kept]
    marks = [
        element("path", d=_chance(low), class_="chance", stroke_dasharray="2 4"),
        _alpha(alpha, low),
        element("path", d=_path(corners), class_="curve"),
        *_operating(measured, low),
    ]
    title = f"ROC curve of {inert(measured.code, NAME)}"
    names = ("false alarms, of clean sessions (logarithmic)", "found, of drifted sessions")
    return _framed((title, _told(measured, alpha)), name, names, [*_decades(low), *_heights(), *marks])


def reliability(measured: Assessment, name: str) -> Markup:
    """Return how many of the sessions of a score were drifted, with intervals of 95 %.

    On the diagonal a score is that share itself. `name` makes the ids unique.
    """
    bins = measured.bins[:: -(-len(measured.bins) // _BINS) or 1]
    at = _across(measured.alert)
    marks = [
        element("line", x1=_LEFT, x2=_RIGHT, y1=_BASE, y2=_TOP, class_="chance", stroke_dasharray="2 4"),
        element("line", x1=at, x2=at, y1=_TOP, y2=_BASE, class_="alpha", stroke_dasharray="5 4"),
        *[_bar(one) for one in bins],
        *_counts(bins),
    ]
    title = f"Drifted sessions by the score of {inert(measured.code, NAME)}"
    names = ("highest score of a session", "drifted, of sessions with that score")
    return _framed((title, _told_of_bins(measured)), name, names, [*_scores(), *_heights(), *marks])


def _framed(told: tuple[str, str], name: str, names: tuple[str, str], content: Sequence[Markup | None]) -> Markup:
    (title, desc), (across, up) = told, names
    middle = (_LEFT + _RIGHT) // 2
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", desc, id=f"{name}-desc"),
        element("path", d=f"M{_LEFT} {_TOP}V{_BASE}H{_RIGHT}", class_="axis"),
        content,
        element("text", across, x=middle, y=_BASE + 36, text_anchor="middle"),
        # There is no turning text here: what the upright axis is stands over it.
        element("text", up, x=_LEFT, y=_TOP - 4),
        xmlns="http://www.w3.org/2000/svg",
        class_="plot",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        width="100%",
        height="100%",
    )


def _told(measured: Assessment, alpha: float) -> str:
    seen = measured.whole
    area = "" if measured.auc is None else f" The area under the curve is {measured.auc:.3f}."
    at = f"At {number(measured.alert)}: {rate(seen.found)} drifted sessions found, {rate(seen.false_alarms)} clean ones"
    return f"{at} alarm; alpha is {whole(alpha)}.{area}"


def _told_of_bins(measured: Assessment) -> str:
    filled = [one for one in measured.bins if one.drifted.n]
    told = [f"{_span(one)}: {rate(one.drifted)}" for one in filled[:_NAMED]]
    more = f"; and {len(filled) - _NAMED} more" if len(filled) > _NAMED else ""
    return f"Drifted sessions by score, alert from {number(measured.alert)}. {'; '.join(told)}{more}."


def _span(one: Bin) -> str:
    return f"{number(one.low)} to {number(one.high)}"


def _lowest(measured: Assessment, alpha: float) -> float:
    """Return the share at the left edge: a decade below the smallest that is drawn."""
    clean = measured.whole.false_alarms.n
    shares = [alpha, *[one.false_alarms for one in measured.curve], *([1.0 / clean] if clean > 0 else [])]
    least = min([one for one in shares if one > _LEAST], default=_MOST)
    return min(_MOST, max(_LEAST, 10.0 ** (math.ceil(math.log10(least) - 1e-9) - 1)))


def _log(value: float, low: float) -> float:
    """Return how far right a share of false alarms stands; none at all stands at the left edge."""
    if value <= low:
        return _LEFT
    return _LEFT + (_RIGHT - _LEFT) * math.log(min(value, 1.0) / low) / math.log(1.0 / low)


def _across(score: float) -> str:
    return _short(_LEFT + (_RIGHT - _LEFT) * _held(score))


def _height(value: float) -> float:
    return _BASE - (_BASE - _TOP) * _held(value)


def _held(value: float) -> float:
    """Return a number as a share: an artefact may say anything, and nothing is drawn beside the plot."""
    return min(1.0, max(0.0, value))


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _path(corners: Sequence[tuple[float, float]]) -> str:
    return "".join([f"{'L' if place else 'M'}{_short(x)} {_short(y)}" for place, (x, y) in enumerate(corners)])


def _chance(low: float) -> str:
    """Return where as many drifted as clean sessions alarm: what chance does."""
    steps = [low ** (1 - step / 40) for step in range(41)]
    return _path([(_log(one, low), _height(one)) for one in steps])


def _alpha(alpha: float, low: float) -> Markup:
    x = _log(alpha, low)
    before = x > (_LEFT + _RIGHT) / 2
    place = {"x": _short(x), "y": _short(_height(0.06)), "dx": "-4" if before else "4"}
    line = element("line", x1=_short(x), x2=_short(x), y1=_TOP, y2=_BASE, class_="alpha", stroke_dasharray="5 4")
    text = element("text", f"alpha {whole(alpha)}", **place, text_anchor="end" if before else "start", class_="label")
    return element("g", line, text)


def _operating(measured: Assessment, low: float) -> Iterator[Markup]:
    """Yield the point at which the threshold is, with both intervals."""
    false, found = measured.whole.false_alarms, measured.whole.found
    at, up = ratio(false), ratio(found)
    if at is None or up is None:
        return
    x, y = _short(_log(at, low)), _short(_height(up))
    left, right = (_short(_log(_held(bound), low)) for bound in (false.low, false.high))
    yield element("line", x1=left, x2=right, y1=y, y2=y, class_="spread")
    yield element("line", x1=x, x2=x, y1=_short(_height(found.low)), y2=_short(_height(found.high)), class_="spread")
    yield element("circle", cx=x, cy=y, r="4.500", class_="point")


def _bar(one: Bin) -> Markup | None:
    share = ratio(one.drifted)
    if share is None:
        return None
    x, y = _across(_middle(one)), _short(_height(share))
    ends = [_short(_height(bound)) for bound in (one.drifted.low, one.drifted.high)]
    return element(
        "g",
        element("line", x1=x, x2=x, y1=ends[0], y2=ends[1], class_="bar"),
        element("circle", cx=x, cy=y, r="3.500", class_="dot"),
    )


def _middle(one: Bin) -> float:
    return _held(one.low) / 2 + _held(one.high) / 2


def _counts(bins: Sequence[Bin]) -> Iterator[Markup]:
    """Yield how many sessions are in a bin, beside its dot."""
    every = -(-len(bins) // _NAMED) or 1
    for one in bins[::every]:
        share = ratio(one.drifted)
        if share is not None:
            text = f"{one.drifted.n:,}" if one.drifted.n < _LARGE else f"{one.drifted.n:.0e}"
            last = _middle(one) > 1.0 - 1.0 / _NAMED
            place = {"x": _across(_middle(one)), "y": _short(_height(share)), "dx": "-7" if last else "7", "dy": "4"}
            yield element("text", text, **place, text_anchor="end" if last else "start", class_="label")


def _decades(low: float) -> Iterator[Markup]:
    yield from _tick(_LEFT, "0")
    for power in range(round(math.log10(low)) + 1, 1):
        yield from _tick(_log(10.0**power, low), f"{100 * 10.0**power:.4g} %")


def _scores() -> Iterator[Markup]:
    for step in range(5):
        yield from _tick(_LEFT + (_RIGHT - _LEFT) * step / 4, f"{step / 4:g}")


def _tick(x: float, text: str) -> Iterator[Markup]:
    at = _short(x)
    yield element("line", x1=at, x2=at, y1=_BASE, y2=_BASE + 5, class_="axis")
    yield element("text", text, x=at, y=_BASE + 18, text_anchor="end" if x >= _RIGHT else "middle", class_="label")


def _heights() -> Iterator[Markup]:
    for step in range(5):
        at = _short(_height(step / 4))
        yield element("line", x1=_LEFT, x2=_RIGHT, y1=at, y2=at, class_="grid")
        text = f"{25 * step} %"
        yield element("text", text, x=_LEFT - 5, y=at, dy="4", text_anchor="end", class_="label")
