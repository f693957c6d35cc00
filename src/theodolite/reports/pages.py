"""The page of each code: what it means, why it matters, an example, what to do."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from msgspec import Struct

__all__ = ("Page", "codes", "page")

_FAILURE = "monitor.failure"


class Page(Struct, frozen=True, kw_only=True):
    """What there is to know about a code. `meaning` is one line, `text` the whole page in Markdown."""

    code: str
    meaning: str
    text: str


@cache
def codes() -> tuple[str, ...]:
    """Return the codes that have a page, sorted."""
    names = [entry.name for entry in files("theodolite.reports").joinpath("codes").iterdir()]
    return tuple(sorted(name.removesuffix(".md") for name in names if name.endswith(".md")))


def page(code: str) -> Page | None:
    """Return the page of a code, or None. The failures of all detectors share one.

    >>> page("margin.failure").code
    'monitor.failure'
    """
    return _read(_FAILURE if code.endswith(".failure") else code)


@cache
def _read(code: str) -> Page | None:
    if code not in codes():
        return None
    text = files("theodolite.reports").joinpath("codes", f"{code}.md").read_text(encoding="utf-8")
    # The second paragraph of a page, its first after the title, says what the code means.
    return Page(code=code, meaning=" ".join(text.split("\n\n")[1].split()), text=text)
