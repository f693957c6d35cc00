"""What the parts of a page are made of: titled sections, tables with a caption, and how much a list leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from theodolite.reports.markup import Content, Markup, element

__all__ = ("more", "section", "table", "within")


def section(name: str, title: Content, *content: Content, level: int, kind: str | None = None) -> Markup:
    """Return a part of a page with its heading; `name` is the id of the heading, which names the part."""
    return element("section", element(f"h{level}", title, id=name), content, class_=kind, aria_labelledby=name)


def table(caption: str, names: Sequence[str], rows: Content, *, kind: str | None = None) -> Markup:
    """Return a table that can be scrolled sideways, with the keyboard too, where it is wider than the page."""
    head = element("thead", element("tr", [element("th", name, scope="col") for name in names]))
    whole = element("table", element("caption", element("span", caption)), head, element("tbody", rows), class_=kind)
    return element("div", whole, class_="scroll", tabindex="0", role="region", aria_label=caption)


def within(pieces: Iterable[Markup], room: int) -> list[Markup]:
    """Return the first pieces that take so many bytes together, and one at least. What comes later is not made."""
    kept: list[Markup] = []
    for piece in pieces:
        room -= len(piece.encode())
        if kept and room < 0:
            break
        kept.append(piece)
    return kept


def more(count: int, what: str) -> Markup | None:
    """Return how many more there are of something, or nothing."""
    return element("p", f"... and {count:,} more {what}: --format json has all", class_="quiet") if count > 0 else None
