"""The pages of the codes, on a terminal or in a pipe."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from theodolite.config.plugins import PluginWarning
from theodolite.config.settings import Settings, nearest
from theodolite.config.wiring import wire
from theodolite.core.calibration import Band
from theodolite.core.errors import ConfigError
from theodolite.reports.layout import Span, Table, plain
from theodolite.reports.pages import codes, kinds, page, pages_of

__all__ = ("explained", "listed")


def listed() -> str:
    """Return all codes with a line each."""
    rows = [(Span(known.code), Span(known.meaning)) for known in map(page, codes()) if known is not None]
    return "".join(plain([Table(("code", "what it means"), tuple(rows), indent=0)]))


def explained(code: str, *, terminal: bool) -> str:
    """Return the page of a code, or of the code that has this kind of evidence, as Markdown or drawn for the terminal.

    Of a plug-in's code without a page, what its package says of it. Raises ConfigError when nobody knows the code.
    """
    known = page(code) or page(kinds().get(code, ""))
    text = known.text if known else _brought(code)
    if not terminal:
        return text
    from rich.console import Console  # noqa: PLC0415 - rich's Markdown doubles the time that this verb takes
    from rich.markdown import Markdown  # noqa: PLC0415 - as above

    console = Console()
    with console.capture() as shown:
        console.print(Markdown(text))
    return shown.get()


def _brought(code: str) -> str:
    """Return what plug-ins say of a code."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PluginWarning)
        with wire(Settings()) as instrument:
            bands = instrument.monitor.fleet.bands
            pages = pages_of(instrument.monitor.detectors)
    if code not in bands:
        raise ConfigError(f"there is no page for the code {code!r}; {_meant(code, sorted({*codes(), *bands}))}")
    text = pages.get(code) or _unpaged(code, bands)
    return text if text.endswith("\n") else f"{text}\n"


def _meant(code: str, known: list[str]) -> str:
    begins = [name for name in known if name.startswith(f"{code}.")]
    hint = f"did you mean {' or '.join(map(repr, begins))}?" if begins else nearest(code, known)
    return hint if hint.startswith("known") else f"{hint} Known: {', '.join(known)}"


def _unpaged(code: str, bands: Mapping[str, Band]) -> str:
    band = bands[code]
    strong = "" if band.strong is None else f", strong at {band.strong:g}"
    does = f"It {'may act' if band.acts else 'never acts'} and {'counts as' if band.finds else 'is no'} finding."
    return (
        f"# {code}\n\nAn alarm of the detector {code.partition('.')[0]}, whose package brings no page for it.\n\n"
        f"It alarms at {band.alert:g}{strong}, {band.status}: {band.source or 'no source is given'}. {does}\n"
    )
