"""The quick start of agent-airlock's OpenAPI guard, with only its imports changed."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from theodolite.api import payload
from theodolite.api.payload import (
    OpenAPIDriftGuard,
    OpenAPIDriftVerdict,
    OpenAPIDriftViolation,
    openapi_doc_drift_guard_defaults,
    vaccinate_openapi,
)

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "seed-names.md").read_text(encoding="utf-8")
SPEC = {
    "openapi": "3.0.3",
    "info": {"title": "Users", "version": "1"},
    "paths": {
        "/users": {
            "post": {
                "operationId": "createUser",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {
                                "type": "object",
                                "required": ["email", "age"],
                                "additionalProperties": False,
                                "properties": {
                                    "email": {"type": "string"},
                                    "age": {"type": "integer"},
                                    "nickname": {"type": "string"},
                                },
                            }
                        }
                    },
                },
                "responses": {"201": {"description": "created"}},
            }
        }
    },
}


def test_the_quick_start_runs(tmp_path: Path) -> None:
    (tmp_path / "openapi.json").write_text(json.dumps(SPEC))
    spec = json.loads((tmp_path / "openapi.json").read_text())
    guard = OpenAPIDriftGuard(spec=spec, drift_mode="strict")

    decision = guard.evaluate(
        operation_id="createUser",
        args={"email": "a@b.co"},  # age missing
    )
    assert decision.allowed is False
    assert decision.verdict == OpenAPIDriftVerdict.DENY_DRIFT
    told = [(d.kind.value, d.field) for d in decision.divergences]
    assert told == [("missing_required", "age")]
    assert all(isinstance(text, str) for d in decision.divergences for text in (d.expected, d.observed))


def test_the_decorator_runs() -> None:
    vaccine = vaccinate_openapi(SPEC, drift_mode="strict")

    @vaccine("createUser")
    def create_user(*, email: str, age: int | None = None, nickname: str | None = None) -> dict[str, object]:
        return {"email": email, "age": age, "nickname": nickname}

    with pytest.raises(OpenAPIDriftViolation):
        create_user(email="a@b.co")
    assert create_user(email="a@b.co", age=3)["age"] == 3


def test_the_preset_has_its_keys() -> None:
    cfg = openapi_doc_drift_guard_defaults(spec=SPEC, drift_mode="strict")
    assert list(cfg) == ["preset_id", "severity", "default_action", "advisory_url", "drift_mode", "spec"]
    assert (cfg["preset_id"], cfg["severity"]) == ("openapi_doc_drift_guard_2026_05_17", "medium")
    assert (cfg["default_action"], cfg["advisory_url"]) == ("deny", "https://arxiv.org/abs/2605.14312")
    assert cfg["spec"] is SPEC
    for mode in ("warn", "shadow"):
        assert openapi_doc_drift_guard_defaults(spec=SPEC, drift_mode=mode)["default_action"] == "allow"


# Public names of agent-airlock 0.10.26, with what may be given to them or read of them.
NAMES = {
    "OpenAPIDivergence": "kind field expected observed",
    "OpenAPIDivergenceKind": "MISSING_REQUIRED UNKNOWN_FIELD TYPE_MISMATCH",
    "OpenAPIDriftDecision": "allowed verdict detail operation_id divergences",
    "OpenAPIDriftGuard": "evaluate",
    "OpenAPIDriftVerdict": "ALLOW ALLOW_WARN ALLOW_SHADOW DENY_DRIFT DENY_UNKNOWN_OPERATION",
    "OpenAPIDriftViolation": "",
    "openapi_doc_drift_guard_defaults": "",
    "vaccinate_openapi": "",
}
ARGUMENTS: dict[Callable[..., object], str] = {
    OpenAPIDriftGuard: "spec drift_mode",
    OpenAPIDriftGuard.evaluate: "operation_id args",
    vaccinate_openapi: "spec drift_mode",
    openapi_doc_drift_guard_defaults: "spec drift_mode",
}


@pytest.mark.parametrize("name", NAMES)
def test_every_name_and_member_is_there(name: str) -> None:
    made: object = getattr(payload, name)
    assert name in payload.__all__
    assert not [member for member in NAMES[name].split() if not hasattr(made, member)]


@pytest.mark.parametrize(("function", "names"), ARGUMENTS.items())
def test_every_argument_is_taken_by_its_name(function: Callable[..., object], names: str) -> None:
    assert set(names.split()) <= set(inspect.signature(function).parameters)


def test_the_words_are_the_same() -> None:
    for kind in (payload.OpenAPIDivergenceKind, OpenAPIDriftVerdict):
        assert [member.value for member in kind] == [word.lower() for word in NAMES[name_of(kind)].split()]
    for mode in ("strict", "warn", "shadow"):
        assert OpenAPIDriftGuard(spec=SPEC, drift_mode=mode).mode == mode


def name_of(kind: type) -> str:
    return next(name for name in NAMES if getattr(payload, name) is kind)


def test_the_page_has_every_name_and_what_it_says_is_there_is_there() -> None:
    section = PAGE.partition("\n## The OpenAPI guard of agent-airlock\n")[2].partition("\n## ")[0]
    rows = [row.split("|")[1:3] for row in section.splitlines() if row.startswith("| `")]
    told = {name.strip().strip("`"): what for name, what in rows}
    assert set(told) == {*NAMES, "OpenAPIDriftGuard.evaluate"}
    guard = OpenAPIDriftGuard(spec=SPEC, track=True)
    for member in ("rates", "attribute", "contracts", "drift"):
        assert f"`{member}`" in told["OpenAPIDriftGuard"]
        assert hasattr(guard, member)
    for name, kind in (
        ("OpenAPIDivergence", payload.OpenAPIDivergence),
        ("OpenAPIDriftDecision", payload.OpenAPIDriftDecision),
    ):
        added = set(kind.__struct_fields__) - set(NAMES[name].split())
        assert not [field for field in added if f"`{field}`" not in told[name]]
