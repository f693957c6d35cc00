"""The pages of the codes, on a terminal or in a pipe."""

from __future__ import annotations

from theodolite.config.settings import nearest
from theodolite.core.errors import ConfigError
from theodolite.reports.layout import Span, Table, plain
from theodolite.reports.pages import codes, page

__all__ = ("explained", "listed")


def listed() -> str:
    """Return all codes with a line each."""
    rows = [(Span(known.code), Span(known.meaning)) for known in map(page, codes()) if known is not None]
    return "".join(plain([Table(("code", "what it means"), tuple(rows), indent=0)]))


def explained(code: str, *, terminal: bool) -> str:
    """Return the page of a code, as Markdown or drawn for the terminal. Raises ConfigError when there is none."""
    known = page(code)
    if known is None:
        raise ConfigError(
            f"there is no page for the code {code!r}; {nearest(code, list(codes()))} The pages are "
            f"{', '.join(codes())}. What a plug-in says is explained by who wrote it"
        )
    if not terminal:
        return known.text
    from rich.console import Console  # noqa: PLC0415 - rich's Markdown doubles the time that this verb takes
    from rich.markdown import Markdown  # noqa: PLC0415 - as above

    console = Console()
    with console.capture() as shown:
        console.print(Markdown(known.text))
    return shown.get()
