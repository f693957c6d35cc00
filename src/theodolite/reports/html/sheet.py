"""What every page has: the head that lets it load and run nothing, its style, and the sign of the house."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from theodolite.reports.markup import Content, Markup, element

__all__ = ("brand", "page")


def page(title: str, body: Content, *, style: str = "") -> bytes:
    """Return a page of one file. `style` is added to that of all pages, and is ours: nothing of a session is in it."""
    sheet = f"{_style()}{style}"
    whole = element("html", _head(title, sheet), element("body", body), lang="en")
    return b"<!DOCTYPE html>\n%b\n" % whole.encode()


def brand() -> Markup:
    """Return the name of the house and its sign: two sightings of one point, and the angle between them."""
    sign = element(
        "svg",
        element("path", d="M4 22L21 3M4 22L29 13", class_="sight"),
        element("path", d="M12.600 12.400A13 13 0 0 1 15.900 17.900", class_="angle"),
        element("circle", cx="4", cy="22", r="2.500", class_="station"),
        width="32",
        height="26",
        class_="house",
        aria_hidden="true",
    )
    return element("p", sign, "Theodolite", class_="brand")


def _head(title: str, sheet: str) -> Markup:
    # All that a browser may use here is this one style sheet: markup that came in with a text could still do nothing.
    digest = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        element("link", rel="icon", href="data:,"),  # without it a browser asks the server for one
        element("style", Markup(sheet)),
    )


@cache
def _style() -> str:
    return files("theodolite.reports.html").joinpath("style.css").read_text(encoding="utf-8")
