"""The page of each code: what it means, why it matters, an example, what to do, and where public lists have it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from msgspec import Struct

from theodolite.core.arguments import is_mapping

__all__ = ("Page", "Reference", "codes", "explaining", "kinds", "meaning_of", "page", "pages_of", "references_of")

_FAILURE = "monitor.failure"
_REFERENCES = "## References\n"
_EVIDENCE = "## Evidence\n"
# What stands in place of an id where a list has no entry for the code; the title then says why.
_NONE = "none fits"
_CELLS = 3


class Reference(Struct, frozen=True, kw_only=True):
    """An entry of a public list of risks or techniques that a code is about."""

    framework: str
    id: str
    title: str

    @property
    def tag(self) -> str:
        """The entry in a word that tools can filter by, of the form `external/LIST/ID`.

        >>> Reference(framework="MITRE ATLAS", id="AML.T0053", title="AI Agent Tool Invocation").tag
        'external/mitre-atlas/AML.T0053'
        """
        return f"external/{'-'.join(self.framework.lower().replace(':', '').split())}/{self.id}"


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


@cache
def kinds() -> Mapping[str, str]:
    """Return the kinds of evidence that pages of ours explain, each with the code of its page.

    They are the rows of the table under the heading Evidence; a row may be of several, with commas between them.

    >>> kinds()["hijack.target"], kinds()["payload.dependency_missing"]
    ('hijack.call', 'payload.shape')
    """
    rows = [(code, row[0].split(",")) for code in codes() for row in _rows(page(code), _EVIDENCE)]
    return MappingProxyType({cell.strip(" `"): code for code, cells in rows for cell in cells})


def explaining(code: str, evidence: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the codes whose pages help with a finding: that of its evidence, which says what to do, and its own.

    >>> explaining("fusion.call", ["hijack.passage", "hijack.target"])
    ('hijack.call', 'fusion.call')
    """
    carried = [kinds().get(kind, kind if kind in codes() else code) for kind in evidence]
    return tuple(dict.fromkeys([*carried[:1], code]))


def meaning_of(code: str, brought: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return in one line what a code means, whether it has a page or not."""
    known = page(code, brought)
    return known.meaning if known else f"an alarm of the detector {code.partition('.')[0]}, which brings no page."


def references_of(code: str, brought: Mapping[str, str] = MappingProxyType({})) -> tuple[Reference, ...]:
    """Return the entries that the page of a code names: the rows of the table under its heading References.

    Rows without an id are left out: they say that a list has no such entry.

    >>> [reference.id for reference in references_of("shadow_memory.goal_drift")]
    ['LLM01:2025', 'T6', 'ASI01', 'AML.T0051']
    """
    rows = _rows(page(code, brought), _REFERENCES)
    return tuple(
        [Reference(framework=row[0], id=row[1], title=row[2]) for row in rows if len(row) == _CELLS and row[1] != _NONE]
    )


def _rows(known: Page | None, heading: str) -> list[list[str]]:
    """Return the rows of the table under a heading of a page."""
    section = known.text.partition(heading)[2].partition("\n#")[0] if known else ""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines()[3:]]


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
