"""A small builder of HTML and SVG. Text is escaped unless it was built here; only what a report needs can be built."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

from theodolite.reports.escaping import escaped

__all__ = ("ATTRIBUTES", "TAGS", "Content", "Markup", "element", "joined")

# No element that runs, frames, submits or loads anything is among them; `link` is for the icon, which is `data:,`.
TAGS = frozenset({
    "a", "article", "aside", "blockquote", "body", "caption", "code", "dd", "details", "div", "dl", "dt",
    "figcaption", "figure", "footer", "h1", "h2", "h3", "h4", "h5", "head", "header", "html", "li", "link", "main",
    "meta", "nav", "ol", "p", "section", "span", "strong", "style", "summary", "table", "tbody", "td", "th",
    "thead", "title", "tr", "ul", "svg", "circle", "desc", "g", "line", "path", "rect", "text",
})  # fmt: skip
_VOID = frozenset({"link", "meta"})
ATTRIBUTES = frozenset({
    "aria-describedby", "aria-hidden", "aria-label", "aria-labelledby", "charset", "class", "colspan", "content",
    "cx", "cy", "d", "dx", "dy", "fill", "font-family", "font-size", "font-weight", "height", "href", "http-equiv",
    "id", "lang", "name", "open", "overflow", "r", "rel", "role", "rx", "scope", "stroke", "stroke-dasharray",
    "stroke-linecap", "stroke-width", "tabindex", "text-anchor", "viewBox", "width", "x", "x1", "x2", "xmlns", "y",
    "y1", "y2",
})  # fmt: skip
_ID = re.compile(r"[a-z][a-z0-9-]*\Z")
# Where a link may lead: to a part of the same page, or nowhere.
_HREF = re.compile(r"#[a-z][a-z0-9-]*\Z|data:,\Z")


class Markup(str):
    """HTML or SVG that was built here."""

    __slots__ = ()


Content: TypeAlias = "Markup | str | int | Iterable[Content] | None"


def element(tag: str, *content: Content, **attributes: str | float | bool | None) -> Markup:
    """Return an element. Strings are escaped, None is left out, anything else that can be iterated is content too.

    Names of attributes are written with `_` for `-`, and with one more at the end where Python has the word. One that
    is None or False is left out, one that is True has no value.

    Raises ValueError for an element, an attribute, an id or the target of a link that no report needs.

    >>> element("p", "a < b ", element("strong", 3), class_="note")
    '<p class="note">a &lt; b <strong>3</strong></p>'
    """
    if tag not in TAGS:
        raise ValueError(f"a report has no element {tag!r}")
    start = f"<{tag}{''.join([_attribute(name, value) for name, value in attributes.items()])}>"
    return Markup(start if tag in _VOID else f"{start}{joined(content)}</{tag}>")


def joined(content: Content) -> Markup:
    """Return content, one piece after the other, as `element` takes it.

    >>> joined(["<", element("code", "x"), None, 1_000])
    '&lt;<code>x</code>1000'
    """
    if isinstance(content, Markup):
        return content
    if isinstance(content, str):
        return Markup(escaped(content))
    if content is None or isinstance(content, int):
        return Markup("" if content is None else content)
    return Markup("".join(map(joined, content)))


def _attribute(name: str, value: str | float | bool | None) -> str:  # noqa: FBT001 - a value, not a switch
    name = name.rstrip("_").replace("_", "-")
    if name not in ATTRIBUTES:
        raise ValueError(f"a report has no attribute {name!r}")
    if value is None or value is False:
        return ""
    text = "" if value is True else str(value)
    if (name == "id" and not _ID.match(text)) or (name == "href" and not _HREF.match(text)):
        raise ValueError(f"{text!r} is not what an attribute {name!r} of a report may be")
    return f' {name}="{escaped(text)}"'
