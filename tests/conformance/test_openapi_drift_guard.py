"""The quick start of agent-airlock's OpenAPI guard, with only its imports changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from theodolite.api.payload import (
    OpenAPIDriftGuard,
    OpenAPIDriftVerdict,
    OpenAPIDriftViolation,
    openapi_doc_drift_guard_defaults,
    vaccinate_openapi,
)

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
