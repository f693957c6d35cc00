"""The schemas of a tool, which a hostile server may have written."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import UNSET, Raw

from theodolite.core.errors import EventError
from theodolite.core.event import Tool, ToolsDeclared, decode_event, encode_event


def nested(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


def test_parameters_may_be_as_deep_as_arguments_and_no_deeper() -> None:
    assert Tool(name="t", parameters=Raw(nested(100))).parameters == Raw(nested(100))
    with pytest.raises(EventError, match=r"^the parameters of the tool 't': too_deep at /a/a/.*; leave them UNSET$"):
        Tool(name="t", parameters=Raw(nested(101)))


@pytest.mark.parametrize("levels", [500, 5_000, 200_000])
@pytest.mark.parametrize("opening", [b'{"a":', b'{"a":[', b'{"a":[[['])
def test_a_schema_that_is_nested_to_the_skies_is_an_error_and_not_a_crash(levels: int, opening: bytes) -> None:
    closing = opening.replace(b'"a":', b"").replace(b"{", b"}").replace(b"[", b"]")[::-1]
    with pytest.raises(EventError, match="the parameters of"):
        Tool(name="t", parameters=Raw(opening * levels + b"1" + closing * levels))


def test_an_event_with_such_a_schema_is_refused_where_it_is_read() -> None:
    line = encode_event(ToolsDeclared(tools=(Tool(name="t", parameters=Raw(b'{"type":"object"}')),)))
    assert decode_event(line) == ToolsDeclared(tools=(Tool(name="t", parameters=Raw(b'{"type":"object"}')),))
    with pytest.raises((EventError, msgspec.DecodeError), match=r"too_deep|the parameters of"):
        decode_event(line.replace(b'{"type":"object"}', nested(101)))


def test_parameters_are_kept_byte_for_byte() -> None:
    given = b'{ "type" : "object", "x": 1e2 }'
    kept = Tool(name="t", parameters=Raw(given)).parameters
    assert isinstance(kept, Raw)
    assert bytes(kept) == given
    assert Tool(name="t").parameters is UNSET


def test_the_schema_of_results_is_held_to_the_same() -> None:
    given = b'{ "type" : "object" }'
    tool = Tool(name="t", results=Raw(given))
    assert isinstance(tool.results, Raw)
    assert bytes(tool.results) == given
    assert (tool.parameters, Tool(name="t").results) == (UNSET, UNSET)
    declared = ToolsDeclared(tools=(tool,))
    assert decode_event(encode_event(declared)) == declared
    with pytest.raises(EventError, match=r"^the results of the tool 't': too_deep at /a/a/.*; leave them UNSET$"):
        Tool(name="t", results=Raw(nested(101)))
    with pytest.raises(EventError, match="the results of a tool given as JSON must be one JSON object"):
        Tool(name="t", results=Raw(b"[]"))
