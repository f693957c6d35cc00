"""A published document as plain JSON of our own, and the pointers into it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TypeGuard
from urllib.parse import quote, unquote

import msgspec

from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.core.errors import ConfigError
from theodolite.core.text import brief, printable

__all__ = (
    "child",
    "encoded",
    "find",
    "fragment",
    "is_list",
    "is_object",
    "own_copy",
    "pointer_of",
    "show",
    "step",
    "tokens",
    "whole_number",
    "word",
)

# What RFC 3986 lets stand in a fragment, "%" apart; the engine refuses everything else.
_SAFE = "/~!$&'()*+,;=:@-._?"
_PLAIN = re.compile(r"[\w/~!$&'()*+,;=:@\-.?]*", re.ASCII)
# A percent sign that begins no encoded byte means itself.
_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
# More of a name than this makes a message hard to read.
_SHOWN = 200
_ABSENT = object()


def is_object(value: object) -> TypeGuard[dict[str, object]]:
    """Whether it is a JSON object."""
    return type(value) is dict


def is_list(value: object) -> TypeGuard[list[object]]:
    """Whether it is a JSON array."""
    return type(value) is list


def word(value: object) -> str:
    """Return the JSON type of a value of a document.

    >>> print(word(True), word(1), word([]), word(None))
    boolean number array null
    """
    return _WORDS.get(type(value), type(value).__name__)


_WORDS: Mapping[type, str] = {
    dict: "object", list: "array", str: "string", bool: "boolean", int: "number", float: "number", type(None): "null",
}  # fmt: skip


def child(pointer: str, *tokens: str | int) -> str:
    """Return the pointer (RFC 6901) of what stands below another, key by key.

    >>> child("/paths", "/pets/{id}", "get", "parameters", 0)
    '/paths/~1pets~1{id}/get/parameters/0'
    """
    for token in tokens:
        text = token.replace("~", "~0").replace("/", "~1") if isinstance(token, str) else str(token)
        pointer = f"{pointer}/{text}"
    return pointer


def tokens(pointer: str) -> list[str]:
    """Return the steps of a pointer (RFC 6901, section 4); of one that does not begin with a slash, those behind it.

    >>> tokens("/paths/~1pets~1{id}/get")
    ['paths', '/pets/{id}', 'get']
    """
    steps = pointer.split("/")[1:]
    return [one.replace("~1", "/").replace("~0", "~") for one in steps] if "~" in pointer else steps


def fragment(pointer: str) -> str:
    """Return a pointer as the fragment of a URI (RFC 6901, section 6), with all that a URI cannot hold encoded.

    >>> fragment("/paths/~1pets~1{id}/get")
    '/paths/~1pets~1%7Bid%7D/get'
    """
    return quote(pointer, safe=_SAFE)


def encoded(text: str) -> str:
    """Return the fragment of a `$ref` with what a URI cannot hold encoded; what is encoded already stays.

    >>> encoded("/definitions/Map<a%20b>")
    '/definitions/Map%3Ca%20b%3E'
    """
    if _PLAIN.fullmatch(text):
        return text
    return quote(_PERCENT.sub("%25", text), safe=f"{_SAFE}%")


def pointer_of(text: str) -> str:
    """Return the pointer that the fragment of a URI means.

    >>> pointer_of("/paths/~1pets~1%7Bid%7D/get")
    '/paths/~1pets~1{id}/get'
    """
    return unquote(text)


def show(pointer: str) -> str:
    r"""Return a pointer as a message shows it: the root by name, no control characters, some 200 characters.

    >>> print(show(""), show("/a\n\x1b[2J"))
    the root /a\n\x1b[2J
    """
    text = _visible(pointer[: _SHOWN + 1]) or "the root"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}\N{HORIZONTAL ELLIPSIS}"


def _visible(text: str) -> str:
    """Return text with all that no terminal should be sent spelled out."""
    return "".join([one if one.isprintable() else repr(one)[1:-1] for one in text])


def find(root: object, pointer: str, absent: object = _ABSENT) -> object:
    """Return what a pointer leads to.

    Raises KeyError where it leads nowhere, unless `absent` says what to return then.

    >>> find({"a": [1, {"b/c": 2}]}, "/a/1/b~1c")
    2
    """
    node = root
    for token in tokens(pointer):
        node = step(node, token, _ABSENT)
        if node is _ABSENT:
            return _nowhere(pointer, absent)
    return node if not pointer or pointer.startswith("/") else _nowhere(pointer, absent)


def step(node: object, token: str, absent: object = None) -> object:
    """Return what stands below a node by one step of a pointer, or `absent`.

    >>> step([1, 2], "1"), step({"a": 3}, "a"), step({}, "a")
    (2, 3, None)
    """
    if is_object(node):
        return node.get(token, absent)
    if is_list(node) and token.isdecimal() and token.isascii() and int(token) < len(node):
        return node[int(token)]
    return absent


def _nowhere(pointer: str, absent: object) -> object:
    if absent is _ABSENT:
        raise KeyError(pointer)
    return absent


def own_copy(document: object) -> object:
    """Return a copy of a document in plain JSON types, which no later change of the caller's reaches.

    What stands in several places becomes one copy for each, of two million values at most (our choice; the 7 MB of
    GitHub have 258,000). Other mappings and tuples become objects and arrays, and keys that are numbers text ("200:" in
    YAML); 1.0 becomes 1, which it equals. Everything else that is not JSON (dates, bytes, sets, NaN, lone surrogates,
    cycles) is a ConfigError that says where it is.
    Costs about 270 ms for 7 MB (measured once).
    """
    _bounded(document)
    try:
        text = json.dumps(document, allow_nan=False, ensure_ascii=False, default=_as_dict)
        copy: object = _DECODER.decode(text.encode())
    except RecursionError as error:
        raise ConfigError("the document has more levels than can be read: take it apart") from error
    except (TypeError, ValueError) as error:
        found = next(_strangers(document), None)
        if found is None:
            raise ConfigError("the document holds itself, and JSON cannot: take it apart") from error
        where, what = found
        raise ConfigError(
            f"the document is not JSON at {show(where)}: {what} found; read it with theodolite's own reader"
        ) from error
    return copy


def _bounded(document: object) -> None:
    """Refuse a document that would not end, or not soon, when it is written out."""
    count, waiting = 0, [document]
    while waiting:
        node = waiting.pop()
        if is_mapping(node):
            count += len(node)
            waiting += [one for one in node.values() if type(one) not in _LEAVES]
        elif is_sequence(node):
            count += len(node)
            waiting += [one for one in node if type(one) not in _LEAVES]
        if count > _VALUES:
            raise ConfigError(
                f"the document holds itself, or parts of it so often that it is of more than {_VALUES:,} values when "
                "each is written out: take it apart, or refer to what it has several times by $ref"
            )


# Values of a document, with each copy of what stands in several places.
_VALUES = 2_000_000
_LEAVES = frozenset({str, int, float, bool, type(None)})


def whole_number(text: str) -> int | float:
    """Return a number with a point or an exponent as an integer where it is one that a double holds exactly.

    >>> whole_number("1.0"), whole_number("1.5"), whole_number("1e300")
    (1, 1.5, 1e+300)
    """
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


_EXACT = 2**53
_DECODER = msgspec.json.Decoder(float_hook=whole_number)


def _as_dict(value: object) -> object:
    if is_mapping(value):
        return dict(value)
    raise TypeError(type(value).__name__)


def _strangers(document: object) -> Iterator[tuple[str, str]]:
    """Yield where the document holds what is not JSON, and what it is. Cycles are met once."""
    stack: list[tuple[object, str]] = [(document, "")]
    seen: set[int] = set()
    while stack:
        node, pointer = stack.pop()
        if id(node) in seen:
            continue
        if is_mapping(node):
            seen.add(id(node))
            stack.extend((below, child(pointer, str(key))) for key, below in node.items())
        elif is_sequence(node):
            seen.add(id(node))
            stack.extend((below, child(pointer, index)) for index, below in enumerate(node))
        elif isinstance(node, str):
            if printable(node) != node:
                yield pointer, "a lone surrogate"
        elif isinstance(node, float):
            if node - node != 0:  # neither NaN nor an infinity is equal to itself minus itself
                yield pointer, brief(node)
        elif node is not None and not isinstance(node, bool | int):
            yield pointer, type(node).__name__
