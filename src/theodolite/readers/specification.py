"""Published contracts, read from JSON or YAML into JSON and nothing else."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NoReturn, Protocol

import msgspec
import yaml
from msgspec import Struct

from theodolite.contracts.document import child, is_list, is_object
from theodolite.core.errors import ConfigError
from theodolite.core.text import brief, printable

__all__ = ("Progress", "Specification", "content", "parse")

# Is told how many bytes are read, and of how many.
Progress = Callable[[int, int], None]

_BOM = b"\xef\xbb\xbf"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_KEY = re.compile(rb'"\s*:')
_GAPS = (b'" :', b'"\t:', b'"\n:', b'"\r:')
# Escaped quotes, colons and spaces, which look otherwise when written again.
_HIDING = re.compile(rb"\\u00(?:22|3[aA]|20|0)")
# Deeper documents cannot be copied by the C encoder of Python (1,000 levels), and no contract is (our choice).
_DEPTH = 500
# What a document may hold once its aliases are written out: its text, and 32 for each value (our choice; the 7 MB of
# GitHub hold 18 million). A document of a kilobyte can otherwise mean more than all memory.
_WEIGHT = 1 << 27
_PER_VALUE = 32
# After so many parts of a YAML file the progress is told: some 50 times a second.
_STEP = 8192
_TAG = "tag:yaml.org,2002:"
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    f"{_TAG}null": type(None),
    f"{_TAG}bool": bool,
    f"{_TAG}int": int,
    f"{_TAG}float": (float, int),
}
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,300})")
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")


class Specification(Struct, frozen=True, kw_only=True):
    """What a file holds. `duplicates` are the pointers to keys that stand in their object more than once.

    Of those the last counts.
    """

    document: object
    duplicates: tuple[str, ...] = ()


def content(path: Path) -> bytes:
    """Return what a file holds. Raises ConfigError, with the path, if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}): give a file with a specification") from error


def parse(source: bytes | str, *, name: str = "", progress: Progress | None = None) -> Specification:
    r"""Read a contract. `name` is what errors call it; its ending says JSON or YAML, else the text does.

    JSON is RFC 8259. YAML is version 1.2 with the types of JSON alone: `no`, `0123`, `1:30`, `2026-01-02` and `.inf`
    are text; keys are text (`200:`); tags of other types are refused. Aliases are followed and `<<` merges, as long as
    what they stand for stays within a bound; an alias to what it stands in is refused.

    Raises ConfigError, with the name and the line, for what is neither. Costs 60 ms for the 7 MB JSON of GitHub, 40 ms
    for the 185 KB YAML of Airflow, both measured once.

    >>> parse("country: no\nfrom: 2026-01-02\n'200': 0123").document
    {'country': 'no', 'from': '2026-01-02', '200': '0123'}
    """
    data = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source
    name, tell = name or "the specification", progress or _silent
    tell(0, len(data))
    plain = data.removeprefix(_BOM).strip()
    if not plain:
        raise ConfigError(f"{name}: it is empty: give a specification")
    looks_json, says_yaml = plain[:1] in b"{[", name.endswith((".yaml", ".yml"))
    if name.endswith(".json") or (looks_json and not says_yaml):
        document, duplicates = _json(data.removeprefix(_BOM), name)
    else:
        found = _json_within_yaml(data.removeprefix(_BOM), name) if looks_json else None
        document, duplicates = found or _yaml(data, name, tell)
    tell(len(data), len(data))
    return Specification(document=document, duplicates=duplicates)


def _silent(done: int, total: int) -> None:
    del done, total


def _json(data: bytes, name: str) -> tuple[object, tuple[str, ...]]:
    try:
        document: object = msgspec.json.decode(data)
    except RecursionError as error:
        raise ConfigError(f"{name}: it is nested too deep to be a contract: flatten it") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        found = re.search(r"\(byte (\d+)\)", str(error))
        line = data.count(b"\n", 0, int(found[1])) + 1 if found else 1
        raise ConfigError(f"{name}: line {line}: it is no JSON ({printable(str(error))}): correct it") from error
    return document, () if _each_once(data, document) else tuple(_repeated(data))


def _json_within_yaml(data: bytes, name: str) -> tuple[object, tuple[str, ...]] | None:
    """Return what a YAML file holds that is JSON all the same: JSON has escapes that YAML does not know."""
    try:
        return _json(data, name)
    except ConfigError:
        return None


def _each_once(data: bytes, document: object) -> bool:
    """Whether there are as many keys in what was read as in the text, so that none was given twice.

    Counts what looks like the end of a key, in text too, which is the same in both; the fast way first. May err to no.
    """
    if _HIDING.search(data):
        return False
    written = msgspec.json.encode(document)
    if data.count(b'":') == written.count(b'":') and not any(gap in data for gap in _GAPS):
        return True
    return len(_KEY.findall(data)) == len(_KEY.findall(written))


def _repeated(data: bytes) -> Iterator[str]:
    """Yield the pointers to the keys of JSON that an object has more than once."""
    twice: dict[int, list[str]] = {}

    def note(pairs: list[tuple[str, object]]) -> dict[str, object]:
        made = dict(pairs)
        if len(made) < len(pairs):
            times = Counter(key for key, _ in pairs)
            twice[id(made)] = [key for key, count in times.items() if count > 1]
        return made

    stack: list[tuple[object, str]] = [(json.loads(data, object_pairs_hook=note), "")]
    while stack:
        node, pointer = stack.pop()
        if is_object(node):
            yield from (child(pointer, key) for key in twice.get(id(node), ()))
            stack.extend((below, child(pointer, key)) for key, below in node.items())
        elif is_list(node):
            stack.extend((below, child(pointer, index)) for index, below in enumerate(node))


def _yaml(data: bytes, name: str, tell: Progress) -> tuple[object, tuple[str, ...]]:
    building = _Building(name)
    try:
        for count, event in enumerate(yaml.parse(data, Loader=_LOADER)):
            building.take(event)
            if not count % _STEP:
                tell(min(_position(event).index, len(data)), len(data))
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark is not None else ""
        raise ConfigError(f"{name}: {line}it is no YAML ({printable(str(error.problem))}): correct it") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{name}: it is no YAML ({brief(str(error))}): correct it") from error
    return building.root, tuple(building.duplicates)


class _Frame:
    """A collection that is being read."""

    __slots__ = ("anchor", "key", "made", "merged", "merging", "start")

    def __init__(self, made: dict[str, object] | list[object], anchor: str | None, start: int) -> None:
        self.made = made
        self.anchor = anchor
        self.start = start
        self.key: str | None = None
        self.merging = False
        self.merged: list[Mapping[str, object]] = []


class _Building:
    """Makes a document of the events of a YAML parser, which knows neither types nor aliases."""

    def __init__(self, name: str) -> None:
        self.root: object = None
        self.duplicates: list[str] = []
        self._name = name
        self._documents = 0
        self._frames: list[_Frame] = []
        self._weight = 0
        self._anchors: dict[str, tuple[object, int]] = {}
        self._open: set[str] = set()

    def take(self, event: yaml.Event) -> None:
        """Take the next event."""
        if isinstance(event, yaml.ScalarEvent):
            self._weigh(len(event.value), event)
            value = self._scalar(event)
            if event.anchor is not None:
                self._anchors[event.anchor] = value, len(event.value) + _PER_VALUE
            self._put(value, event, merges=event.implicit[0] and event.tag is None)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._begin(event)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._end(event)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                self._fail(event, "a second document begins here: give a file for each")

    def _begin(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in {None, "!", f"{_TAG}{'map' if mapping else 'seq'}"}:
            self._fail(event, f"the tag {brief(event.tag)} is of no type of JSON: leave it out")
        if len(self._frames) >= _DEPTH:
            self._fail(event, "it is nested too deep to be a contract: flatten it")
        if event.anchor is not None:
            self._open.add(event.anchor)
        self._frames.append(_Frame({} if mapping else [], event.anchor, self._weight))
        self._weigh(0, event)

    def _end(self, event: yaml.Event) -> None:
        frame = self._frames.pop()
        if frame.merged and is_object(frame.made):
            for other in frame.merged:
                for key, value in other.items():
                    frame.made.setdefault(key, value)
        if frame.anchor is not None:
            self._open.discard(frame.anchor)
            self._anchors[frame.anchor] = frame.made, self._weight - frame.start
        self._put(frame.made, event)

    def _alias(self, event: yaml.AliasEvent) -> None:
        if event.anchor in self._open:
            self._fail(event, f"the alias {brief(event.anchor)} stands within what it names: JSON cannot hold itself")
        if event.anchor not in self._anchors:
            self._fail(event, f"the alias {brief(event.anchor)} names nothing before it: correct it")
        value, weight = self._anchors[event.anchor]
        self._weigh(weight, event)
        self._put(value, event)

    def _put(self, value: object, event: yaml.Event, *, merges: bool = False) -> None:
        if not self._frames:
            self.root = value
            return
        frame = self._frames[-1]
        if is_list(frame.made):
            frame.made.append(value)
        elif frame.merging:
            self._merge(frame, value, event)
        elif frame.key is not None and is_object(frame.made):
            frame.made[frame.key] = value
            frame.key = None
        else:
            self._key(frame, value, event, merges=merges)

    def _key(self, frame: _Frame, value: object, event: yaml.Event, *, merges: bool) -> None:
        text = event.value if isinstance(event, yaml.ScalarEvent) else value
        if not isinstance(text, str):
            self._fail(event, "a key is text: JSON has no others")
        if merges and text == "<<":
            frame.merging = True
            return
        if text in frame.made:
            self.duplicates.append(child("", *self._way(), text))
        frame.key = text

    def _merge(self, frame: _Frame, value: object, event: yaml.Event) -> None:
        """Take what stands under `<<`: what the mapping says itself counts, then what comes first."""
        frame.merging = False
        for other in value if is_list(value) else [value]:
            if not is_object(other):
                self._fail(event, "<< merges mappings, and this is none: quote the key if it is meant as a name")
            frame.merged.append(other)

    def _way(self) -> Iterator[str | int]:
        """Yield the keys that lead to where the document is being read."""
        for frame in self._frames[:-1]:
            if is_list(frame.made):
                yield len(frame.made)
            else:
                yield frame.key if frame.key is not None else "<<"

    def _scalar(self, event: yaml.ScalarEvent) -> object:
        text = event.value
        if event.tag is None:
            return _plain(text) if event.implicit[0] else text
        if event.tag in {"!", f"{_TAG}str"}:
            return text
        value = _plain(text)
        if event.tag not in _TYPES or not isinstance(value, _TYPES[event.tag]):
            self._fail(event, f"the tag {brief(event.tag)} does not fit JSON, or not what it is on: leave it out")
        return value

    def _weigh(self, weight: int, event: yaml.Event) -> None:
        self._weight += weight + _PER_VALUE
        if self._weight > _WEIGHT:
            self._fail(event, f"with its aliases written out it is larger than {_WEIGHT >> 20} MiB: leave them out")

    def _fail(self, event: yaml.Event, what: str) -> NoReturn:
        raise ConfigError(f"{self._name}: line {_position(event).line + 1}: {what}")


class _Mark(Protocol):
    index: int
    line: int


def _position(event: yaml.Event) -> _Mark:
    mark = event.start_mark
    return _Start() if mark is None else mark


class _Start:
    index = 0
    line = 0


def _plain(text: str) -> object:
    """Return what an unquoted scalar means: a type of JSON if it is written as in JSON, else text.

    `True`, `Null` and `~` count too (YAML 1.2.2, section 10.3.2).
    """
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return _finite(text) if _FLOAT.fullmatch(text) else text


def _finite(text: str) -> object:
    value = float(text)
    return value if math.isfinite(value) else text
