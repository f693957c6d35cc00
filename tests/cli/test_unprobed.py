"""Sessions that are not probed are told with the reason, and with what to do."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Run = Callable[..., Result]
HELPS, SELLS = "You help.", "You sell."


@pytest.fixture
def two(recordings: Path) -> Path:
    """Return a folder of two sessions with two system prompts."""
    for name in ("blind", "clean", "hijacked"):
        path = recordings / f"{name}.json"
        if name == "blind":
            path.unlink()
            continue
        messages = json.loads(path.read_text(encoding="utf-8"))["messages"]
        prompt = {"role": "system", "content": HELPS if name == "clean" else SELLS}
        path.write_text(json.dumps({"messages": [prompt, *messages]}), encoding="utf-8")
    return recordings


def begins(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def test_an_estimate_says_which_session_has_another_prompt_and_what_to_do(
    theodolite: Run, two: Path, shop: Callable[..., Path], home: Path
) -> None:
    shop("http://127.0.0.1:1")
    (home / "prompt.txt").write_text(HELPS, encoding="utf-8")
    shown = theodolite("probe", two, "--model", "shop", "--system", "prompt.txt", "--estimate")
    told = " ".join(shown.stdout.split())
    assert told.startswith("1 session to probe with shop: 30 calls, about ")
    assert (
        "Not probed: 1 session hijacked: the system prompt that was configured is not the one of this session" in told
    )
    assert f"its hash begins with {begins(SELLS)}, that of the one given with {begins(HELPS)}" in told
    assert "what to do: copy the prompt out of the recording, here " in told
    assert "give it by --system; or leave --system out" in told


def test_without_any_session_to_probe_it_names_no_price(
    theodolite: Run, two: Path, shop: Callable[..., Path], home: Path
) -> None:
    shop("http://127.0.0.1:1")
    (home / "prompt.txt").write_text(HELPS + "\n", encoding="utf-8")
    shown = theodolite("probe", two, "--model", "shop", "--system", "prompt.txt", "--estimate")
    assert shown.exit_code == 3
    assert "runs on this machine" not in shown.stdout
    told = " ".join(shown.stdout.split())
    assert "Not probed: 2 sessions clean: the system prompt" in told
    assert told.count("what to do") == 1


def test_the_probe_itself_says_the_same(theodolite: Run, two: Path, shop: Callable[..., Path], home: Path) -> None:
    shop("http://127.0.0.1:1")
    (home / "prompt.txt").write_text(f"{HELPS} ", encoding="utf-8")
    shown = theodolite("probe", two, "--model", "shop", "--system", "prompt.txt")
    told = " ".join(shown.stdout.split())
    assert shown.exit_code == 3
    assert "What was not probed clean: the system prompt that was configured is not the one" in told
    assert "and without a line end of its own" in told
    assert told.endswith("Verdict 2 sessions: 2 not enough evidence")


def test_a_session_that_can_be_probed_is_not_listed(theodolite: Run, two: Path, shop: Callable[..., Path]) -> None:
    shop("http://127.0.0.1:1")
    shown = theodolite("probe", two, "--model", "shop", "--estimate")
    assert shown.exit_code == 0
    assert "Not probed" not in shown.stdout
