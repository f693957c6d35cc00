"""What the builder of HTML and SVG lets through: text as text, and only what a report needs."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.reports.escaping import inert
from theodolite.reports.markup import ATTRIBUTES, TAGS, Markup, element, joined
from theodolite.testing.sessions import HOSTILE_TEXTS

TEXTS = st.text(st.characters()) | st.sampled_from(HOSTILE_TEXTS) | st.text("<>&\"'/= abc\x00\u202e")


class Reading(HTMLParser):
    """What a parser sees of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@given(TEXTS, TEXTS)
def test_a_text_is_read_back_as_a_text_wherever_it_stands(text: str, value: str) -> None:
    seen = Reading(element("p", text, element("strong", text), aria_label=value))
    assert seen.tags == [("p", {"aria-label": inert(value)}), ("strong", {})]
    assert seen.text == inert(text) * 2


def test_what_was_built_is_not_escaped_again() -> None:
    once = element("code", "<")
    assert element("p", once, [once, None, 7]) == "<p><code>&lt;</code><code>&lt;</code>7</p>"
    assert joined(["a", [Markup("<b>")]]) == "a<b>"


def test_attributes_are_named_as_in_python_and_left_out_where_they_say_nothing() -> None:
    made = element("td", class_="x", colspan=4, aria_label=None, open=False, tabindex=True, stroke_width=0.5)
    assert made == '<td class="x" colspan="4" tabindex="" stroke-width="0.5"></td>'


@pytest.mark.parametrize(
    "tag", ["script", "iframe", "img", "form", "object", "base", "use", "foreignObject", "p onload"]
)
def test_an_element_that_does_something_cannot_be_built(tag: str) -> None:
    with pytest.raises(ValueError, match="no element"):
        element(tag)


@pytest.mark.parametrize("name", ["onclick", "style", "src", "srcset", "action", "xlink:href", "x y", 'x"'])
def test_an_attribute_that_does_something_cannot_be_built(name: str) -> None:
    with pytest.raises(ValueError, match="no attribute"):
        element("p", **{name: "x"})


@pytest.mark.parametrize(
    "href", ["https://a.example", "javascript:alert(1)", "//a.example", "data:text/html,x", "# x", ""]
)
def test_a_link_leads_to_the_same_page_or_nowhere(href: str) -> None:
    with pytest.raises(ValueError, match="href"):
        element("a", "x", href=href)


def test_nothing_that_runs_or_loads_is_on_the_lists() -> None:
    assert not TAGS & {"script", "img", "iframe", "object", "embed", "form", "input", "button", "base", "image", "use"}
    assert not [name for name in ATTRIBUTES if name.startswith("on") or name in {"style", "src", "srcset", "action"}]
