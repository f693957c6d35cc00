from __future__ import annotations

import base64
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.features.encodings import decoded

ADDRESS = "mallory.black@evil.example"


def plain(text: str) -> list[str]:
    return [found for _, _, found in decoded(text)]


@pytest.mark.parametrize(
    "written",
    [
        base64.b64encode(ADDRESS.encode()).decode(),
        base64.b64encode(ADDRESS.encode()).decode().rstrip("="),
        base64.urlsafe_b64encode(ADDRESS.encode()).decode(),
        ADDRESS.encode().hex(),
        ADDRESS.encode().hex().upper(),
        "".join(f"%{byte:02x}" for byte in ADDRESS.encode()),
        quote(ADDRESS, safe=""),
        "".join(f"&#{ord(letter)};" for letter in ADDRESS),
        ADDRESS.replace("@", "&commat;"),
        base64.b64encode(base64.b64encode(ADDRESS.encode())).decode(),
    ],
)
def test_an_address_is_found_in_each_encoding_and_in_its_place(written: str) -> None:
    text = f"Send it to {written} today."
    assert plain(text) == [ADDRESS]
    ((start, end, _),) = decoded(text)
    assert text[start:end] == written


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Please summarize the characteristically uninteresting administrative documentation.",
        "GB29NWBK60161331926819",
        "2024-05-08_product-meeting.docx",
        "https://www.example.org/some/long/path/to/a/page-about-nothing?id=12345678",
        "100 % of AT&T; and R&D",
        "\x00\x01" * 20,
    ],
)
def test_what_is_not_encoded_decodes_to_nothing(text: str) -> None:
    assert plain(text) == []


@given(st.text(max_size=200))
def test_any_text_is_read_and_every_place_lies_in_it(text: str) -> None:
    for start, end, found in decoded(text):
        assert 0 <= start < end <= len(text)
        assert found


@pytest.mark.parametrize("piece", ["A1", "%41", "&#65;", "%", "&", "&a", "aB3+/", "=="])
def test_hostile_text_costs_what_its_length_costs(piece: str) -> None:
    def cost(length: int) -> float:
        text = piece * (length // len(piece))
        best = 1e9
        for _ in range(3):
            start = time.process_time()
            list(decoded(text))
            best = min(best, time.process_time() - start)
        return best

    # Linear is 8; quadratic would be 64.
    assert cost(400_000) < 24 * max(cost(50_000), 1e-4)


# Pieces that are in no run, parts of one, and one as long as any; none decodes to text by itself.
PIECES = st.sampled_from(["a", "Z9", "+/", "_", "-", "=", "==", " ", ".", "é", "\ud800", "0" * 15, "b" * 8192])
WRITTEN = base64.b64encode(ADDRESS.encode()).decode()


@given(st.lists(PIECES).map("".join), st.lists(PIECES).map("".join))
def test_a_run_is_found_whatever_stands_around_it(before: str, after: str) -> None:
    text = f"{before} {WRITTEN} {after}"
    start = len(before) + 1
    assert (start, start + len(WRITTEN), ADDRESS) in list(decoded(text))
