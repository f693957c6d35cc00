"""A scan tells whose results the settings trust, and which names in them no session declares or calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Run = Callable[..., Result]

SETTINGS = """plugins = false
[tools]
send_invoice = "write"
declared_only = "read"
sned_invoice = "write"
[tools.contacts]
outside = false
[tools.read_file]
outside = true
"""


@pytest.fixture
def settings(tmp_path: Path, recordings: Path) -> Path:
    clean = recordings / "clean.json"
    messages = json.loads(clean.read_text(encoding="utf-8"))["messages"]
    tools = [{"type": "function", "function": {"name": "declared_only", "parameters": {"type": "object"}}}]
    clean.write_text(json.dumps({"messages": messages, "tools": tools}), encoding="utf-8")
    path = tmp_path / "settings.toml"
    path.write_text(SETTINGS, encoding="utf-8")
    return path


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_names_that_no_session_declares_or_calls_are_told(
    theodolite: Run, recordings: Path, settings: Path, jobs: str
) -> None:
    text = " ".join(theodolite("scan", recordings, "--config", settings, "--jobs", jobs).stdout.split())
    assert "By the settings only you and the user write what these tools return: contacts." in text
    names = "[tools] names contacts, sned_invoice, which no session here declares or calls: check how they are spelled."
    assert names in text


def test_a_kept_report_tells_them_too(theodolite: Run, recordings: Path, settings: Path) -> None:
    theodolite("scan", recordings, "--config", settings, "--format", "json", "--output", "kept.json")
    kept = json.loads(Path("kept.json").read_text(encoding="utf-8"))["summary"]
    assert (kept["trusted"], kept["unmet"]) == (["contacts"], ["contacts", "sned_invoice"])
    page = theodolite("report", "kept.json").stdout
    assert "[tools] names contacts, sned_invoice, which no session here declares or calls" in page


def test_without_settings_nothing_is_said_of_them(theodolite: Run, recordings: Path) -> None:
    assert "[tools]" not in theodolite("scan", recordings).stdout


def test_a_scan_of_nothing_that_could_be_read_says_nothing_of_names(
    theodolite: Run, settings: Path, tmp_path: Path
) -> None:
    empty = tmp_path / "broken.json"
    empty.write_text('{"messages": 3}', encoding="utf-8")
    assert "[tools] names" not in theodolite("scan", tmp_path / "broken.json", "--config", settings).stdout
