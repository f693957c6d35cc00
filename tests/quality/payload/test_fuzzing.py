"""What is given to the fuzzer, in its short form: no input breaks the guard, and what would break it is noticed."""

from __future__ import annotations

import json
from random import Random

import pytest
from fuzzing import SECRET, TARGETS, BrokenError, Caller, Loader
from fuzzing_mutation import mutated
from hypothesis import given, settings
from hypothesis import strategies as st

from theodolite.core.contract import Divergence, Kind, Location
from theodolite.detectors.payload.engine import Checker

LOADER, CALLER = Loader(planted=False), Caller(planted=False)
SEEDS = {"loader": list(LOADER.seeds()), "checker": list(CALLER.seeds())}


def unchanged(data: bytes, most: int) -> bytes:
    return data[:most]


def test_there_are_inputs_to_begin_with_for_both_targets() -> None:
    assert [target.name for target in TARGETS] == list(SEEDS)
    assert len(SEEDS["loader"]) > 20
    assert len(SEEDS["checker"]) > 100


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.randoms(use_true_random=False))
def test_documents_are_contracts_or_a_clear_error(dice: Random) -> None:
    data = dice.choice(SEEDS["loader"])
    for _ in range(dice.randint(0, 3)):
        data = mutated(data, 50_000, dice.getrandbits(32), unchanged)
    LOADER(data)


def test_a_body_that_refers_to_itself_ends() -> None:
    pointer = "#/paths/~1a/put/requestBody/content/application~1json/schema"
    content = {"application/json": {"schema": {"$ref": pointer}}}
    LOADER(json.dumps({"openapi": "3.1.0", "paths": {"/a": {"put": {"requestBody": {"content": content}}}}}).encode())


def test_a_name_that_is_no_text_is_no_hindrance_to_a_repair() -> None:
    closed = next((number, names.index("closed")) for number, names in enumerate(CALLER.names) if "closed" in names)
    CALLER(json.dumps({"d": closed[0], "o": closed[1], "l": 0, "a": {"$py": "key"}}).encode())


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.binary(max_size=200) | st.text(max_size=80).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_bytes_of_any_kind_are_contracts_or_a_clear_error(data: bytes) -> None:
    LOADER(data)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.randoms(use_true_random=False))
def test_calls_are_judged_as_python_jsonschema_does_and_no_value_is_told(dice: Random) -> None:
    data = dice.choice(SEEDS["checker"])
    for _ in range(dice.randint(0, 3)):
        data = mutated(data, 50_000, dice.getrandbits(32), unchanged)
    CALLER(data)


def test_a_change_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    seed = SEEDS["loader"][0]
    assert mutated(b'{"a": [1]}', 1_000, 3, unchanged) == mutated(b'{"a": [1]}', 1_000, 3, unchanged)
    assert len({mutated(b'{"a": [1]}', 1_000, number, unchanged) for number in range(50)}) > 25
    assert len(mutated(seed, 100, 1, unchanged)) <= 100


def test_planted_faults_come_out() -> None:
    schema = {"type": "object", "properties": {"a": {"minLength": 1, "exclusiveMaximum": True}}}
    with pytest.raises(ZeroDivisionError, match="planted"):
        Loader(planted=True)(json.dumps({"tools": [{"name": "a", "inputSchema": schema}]}).encode())
    planted = Caller(planted=True)
    number, operation = next(
        (number, names.index("composed")) for number, names in enumerate(planted.names) if "composed" in names
    )
    call = {"d": number, "o": operation, "l": 0, "a": {"a": 1, "b": 2}}
    with pytest.raises(ZeroDivisionError, match="planted"):
        planted(json.dumps(call).encode())


def tells(
    checker: Checker, name: str, arguments: object, /, *, location: Location | None = None
) -> tuple[Divergence, ...]:
    """Give a value of the call away."""
    del checker, name, location
    return (Divergence(kind=Kind.TYPE_MISMATCH, pointer="/a", observed=str(arguments)),)


def sleeps(
    checker: Checker, name: str, arguments: object, /, *, location: Location | None = None
) -> tuple[Divergence, ...]:
    """Let everything pass."""
    del checker, name, arguments, location
    return ()


def test_a_value_that_is_told_is_noticed() -> None:
    call = {"d": 0, "o": 0, "l": 1, "a": {"a": SECRET}}
    CALLER(json.dumps(call).encode())
    with pytest.raises(BrokenError, match="value of the call"):
        Caller(planted=False, check=tells)(json.dumps(call).encode())


def test_a_verdict_that_python_jsonschema_does_not_share_is_noticed() -> None:
    number, operation = next(
        (number, names.index("closed")) for number, names in enumerate(CALLER.names) if "closed" in names
    )
    call = {"d": number, "o": operation, "l": 0, "a": {"path": 3}}
    CALLER(json.dumps(call).encode())
    with pytest.raises(BrokenError, match="jsonschema says otherwise"):
        Caller(planted=False, check=sleeps)(json.dumps(call).encode())
