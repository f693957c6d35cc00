from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from theodolite.contracts.document import is_object
from theodolite.core.errors import ConfigError
from theodolite.readers.specification import content, parse


def held(source: bytes | str, name: str = "") -> object:
    return parse(source, name=name).document


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("y", "y"),
        ("0123", "0123"),
        ("0o17", "0o17"),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2026-01-02", "2026-01-02"),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        (".inf", ".inf"),
        ("-.INF", "-.INF"),
        (".nan", ".nan"),
        ("+1", "+1"),
        ("1e999", "1e999"),
        ("=", "="),
        ("12", 12),
        ("-0", 0),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("'12'", "12"),
        ('"true"', "true"),
        ("! 12", "12"),
        ("!!str 12", "12"),
        ("!!int 12", 12),
        ("!!float 12", 12),
        ("!!bool true", True),
        ("!!null ~", None),
        ("!!seq [1]", [1]),
        ("!!map {a: 1}", {"a": 1}),
        ("{a: no, b: [on, 010]}", {"a": "no", "b": ["on", "010"]}),
    ],
)
def test_yaml_has_the_types_of_json_alone(text: str, value: object) -> None:
    found = held(f"a: {text}\n")
    assert found == {"a": value}
    assert is_object(found)
    assert type(found["a"]) is type(value) or text == "!!float 12"


@pytest.mark.parametrize("key", ["200", "no", "null", "~", "1.0", "2026-01-02", "'<<'", "true"])
def test_keys_are_text(key: str) -> None:
    assert held(f"{key}: 1\n") == {key.strip("'"): 1}


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), json_values, min_size=1), st.sampled_from([None, 2]))
def test_json_is_read_as_it_was_written_and_as_yaml_too(document: dict[str, object], indent: int | None) -> None:
    text = json.dumps(document, indent=indent)
    found = parse(text)
    assert found.document == document
    assert found.duplicates == ()
    assert held(text, "a.yaml") == document


# PyYAML writes these as they are and reads them as ends of lines.
written = st.text(st.characters(exclude_characters="\x85\u2028\u2029", exclude_categories=["Cs"]))


@given(st.dictionaries(written, st.recursive(written | st.integers() | st.none(), st.lists, max_leaves=6), min_size=1))
def test_what_yaml_writes_is_read_back(document: dict[str, object]) -> None:
    text: str = yaml.safe_dump(  # pyright: ignore[reportUnknownMemberType] - of the stub
        document, allow_unicode=True, default_style='"'
    )
    assert held(text, "a.yaml") == document


def test_aliases_are_followed_and_merges_give_way() -> None:
    text = """
base: &base {type: object, title: base}
other: &other {title: other, deprecated: true}
first: {<<: *base, title: own}
both: {title: own, <<: [*base, *other]}
order: {<<: [*other, *base]}
list: &list [1, *base]
again: *list
word: &word text
*word : 1
"""
    found = held(text)
    assert isinstance(found, dict)
    base = {"type": "object", "title": "base"}
    assert found["first"] == {"type": "object", "title": "own"}
    assert found["both"] == {"type": "object", "title": "own", "deprecated": True}
    assert found["order"] == {"type": "object", "title": "other", "deprecated": True}
    assert found["again"] == found["list"] == [1, base]
    assert found["base"] == base
    assert found["text"] == 1


def test_keys_given_twice_are_told_with_their_pointers() -> None:
    text = "a:\n- {b: 1, c/d: 2, b: 3}\n- x: {y: 1, y: 2, y: 3}\na: 5\n"
    found = parse(text)
    assert found.document == {"a": 5}
    assert set(found.duplicates) == {"/a/0/b", "/a/1/x/y", "/a"}
    found = parse('{"p": [{"b": 1, "b" : 2}], "q": {"\\u0022:": 1}}')
    assert found.document == {"p": [{"b": 2}], "q": {'":': 1}}
    assert found.duplicates == ("/p/0/b",)


def test_one_key_twice_among_many_is_found_in_time() -> None:
    text = "{" + ",".join(f'"k{n}": 1' for n in range(60_000)) + ',"k0": 2}'
    start = time.process_time()
    assert parse(text).duplicates == ("/k0",)
    assert time.process_time() - start < 2.0


@given(
    st.lists(st.sampled_from(["a", "b", '":', '" :', ":", "\\", "\n"]), max_size=4),
    st.sampled_from([":", " :", "\n: "]),
)
def test_keys_of_json_given_twice_are_found_however_they_are_written(keys: list[str], colon: str) -> None:
    value = json.dumps('":')
    text = "{" + ",".join(f"{json.dumps(key)}{colon}{value}" for key in keys) + "}"
    assert len(parse(text).duplicates) == len({key for key in keys if keys.count(key) > 1})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: !!binary aGk=", "line 1: the tag"),
        ("a: !!timestamp 2026-01-02", "line 1: the tag"),
        ("a: !!python/object/apply:os.system [ls]", "line 1: the tag"),
        ("a: !!set {b, c}", "line 1: the tag"),
        ("b: 1\na: !mine x", "line 2: the tag"),
        ("a: !!int x", "line 1: the tag"),
        ("a: !!bool 1", "line 1: the tag"),
        ("a: &x [1, *x]", "line 1: the alias 'x' stands within"),
        ("a: &x {<<: *x}", "line 1: the alias 'x' stands within"),
        ("a: *x", "x"),
        ("? [a]\n: 1", "line 1: a key is text"),
        ("? {a: 1}\n: 1", "line 1: a key is text"),
        ("a: {<<: 3}", "line 1: << merges mappings"),
        ("a: {<<: [3]}", "line 1: << merges mappings"),
        ("a: 1\n---\nb: 2", "line 2: a second document"),
        ("a: [1", "line 2: it is no YAML"),
        ("a:\tb: c", "line 1: it is no YAML"),
        ("a: \x01", "it is no YAML"),
        ("", "it is empty"),
        ("  \n", "it is empty"),
        ('{"a": NaN}', "line 1: it is no JSON"),
        ('{\n"a": 01}', "line 2: it is no JSON"),
        ("[1,]", "line 1: it is no JSON"),
        ("[" * 100_000, "too deep"),
        ("a: " + "[" * 600 + "]" * 600, "too deep"),
        ("a: " + "[" * 100_000, "depth"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_line(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        held(text)


@pytest.mark.parametrize("data", [b"\xff\xfe\xfa", b"a: \xff", b'{"a": "\xff"}'])
def test_what_is_no_text_is_said(data: bytes) -> None:
    with pytest.raises(ConfigError):
        held(data)


def test_a_mark_of_the_byte_order_says_nothing() -> None:
    assert held(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}
    assert held(b"\xef\xbb\xbfa: 1") == {"a": 1}


def test_aliases_that_stand_for_too_much_are_refused() -> None:
    bomb = "a0: &a0 [" + ", ".join(["x"] * 10) + "]\n"
    bomb += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))
    with pytest.raises(ConfigError, match=r"line .*aliases"):
        held(bomb)
    long = f"a: &a {'x' * 1_000_000}\nb: [{', '.join(['*a'] * 200)}]\n"
    with pytest.raises(ConfigError, match=r"line 2: .*aliases"):
        held(long)
    merged = "a: &a {" + ", ".join(f"k{n}: {'x' * 1000}" for n in range(1000)) + "}\n"
    merged += "".join(f"b{n}: {{<<: *a}}\n" for n in range(200))
    with pytest.raises(ConfigError, match="aliases"):
        held(merged)


def test_a_file_is_read_by_its_ending_or_else_by_what_it_holds(tmp_path: Path) -> None:
    for name, text in (("a.yaml", "{a: no}"), ("b.yml", '{"a": "no"}'), ("c.json", '{"a": "no"}'), ("d", "a: no")):
        (tmp_path / name).write_text(text)
        assert parse(content(tmp_path / name), name=str(tmp_path / name)).document == {"a": "no"}
    (tmp_path / "e.json").write_text("a: no")
    with pytest.raises(ConfigError, match=r"e\.json: line 1: it is no JSON"):
        parse(content(tmp_path / "e.json"), name=str(tmp_path / "e.json"))
    with pytest.raises(ConfigError, match=r"f\.json: cannot be read"):
        parse(content(tmp_path / "f.json"), name=str(tmp_path / "f.json"))
    with pytest.raises(ConfigError, match="cannot be read"):
        parse(content(tmp_path), name=str(tmp_path))


@pytest.mark.parametrize("text", ["a: 1\n" + "b:\n" + "- x\n" * 20_000, '{"a": 1}'])
def test_progress_begins_at_none_and_ends_with_all(text: str) -> None:
    told: list[tuple[int, int]] = []
    parse(text, progress=lambda done, total: told.append((done, total)))
    assert told[0] == (0, len(text))
    assert told[-1] == (len(text), len(text))
    assert told == sorted(told)
    assert len(told) >= (4 if text.startswith("a") else 2)
