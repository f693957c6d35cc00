"""The page of each code: what it means, why it matters, an example, what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from msgspec import Struct

from theodolite.core.arguments import is_mapping

__all__ = ("Page", "codes", "meaning_of", "page", "pages_of")

_FAILURE = "monitor.failure"


class Page(Struct, frozen=True, kw_only=True):
    """What there is to know about a code. `meaning` is one line, `text` the whole page in Markdown."""

    code: str
    meaning: str
    text: str


def pages_of(detectors: Iterable[object]) -> dict[str, str]:
    """Return the pages that detectors bring: Markdown by code, in an attribute `pages` that a detector may have.

    What is no text is left out, and so is a page of another detector's code.
    """
    brought: dict[str, str] = {}
    for detector in detectors:
        name: object = getattr(detector, "name", None)
        offered: object = getattr(detector, "pages", None)
        texts: Mapping[object, object] = offered if is_mapping(offered) else {}
        brought.update(
            {
                code: text
                for code, text in texts.items()
                if isinstance(code, str) and isinstance(text, str) and code.partition(".")[0] == name
            }
        )
    return brought


@cache
def codes() -> tuple[str, ...]:
    """Return the codes that have a page, sorted."""
    names = [entry.name for entry in files("theodolite.reports").joinpath("codes").iterdir()]
    return tuple(sorted(name.removesuffix(".md") for name in names if name.endswith(".md")))


def page(code: str, brought: Mapping[str, str] = MappingProxyType({})) -> Page | None:
    """Return the page of a code: ours, or else one that was brought, or None. The failures of all detectors share one.

    >>> page("margin.failure").code
    'monitor.failure'
    """
    own = _read(_FAILURE if code.endswith(".failure") else code)
    return own if own is not None or code not in brought else _page(code, brought[code])


def meaning_of(code: str, brought: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return in one line what a code means, whether it has a page or not."""
    known = page(code, brought)
    return known.meaning if known else f"an alarm of the detector {code.partition('.')[0]}, which brings no page."


@cache
def _read(code: str) -> Page | None:
    if code not in codes():
        return None
    text = files("theodolite.reports").joinpath("codes", f"{code}.md").read_text(encoding="utf-8")
    return _page(code, text)


def _page(code: str, text: str) -> Page:
    # The first paragraph that is no title says what the code means.
    told = (" ".join(part.split()) for part in text.split("\n\n") if part.strip() and not part.startswith("#"))
    return Page(code=code, meaning=next(told, f"{code} is explained on its page."), text=text)
