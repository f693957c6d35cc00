"""What a live session recorded of itself is judged alike when it is scanned, and nobody is asked for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

import theodolite as package
from theodolite.config.settings import read_settings
from theodolite.config.wiring import wire
from theodolite.core.event import (
    AnyHostEvent,
    InquirySettled,
    MessageObserved,
    ModelCalled,
    SessionEnded,
    Source,
    TurnEnded,
)
from theodolite.core.policy import Decision
from theodolite.core.reader import Recorded
from theodolite.detectors.behavior.library import shipped
from theodolite.readers.jsonl import EventLines
from theodolite.runtime.replay import Sighting, replay
from theodolite.testing.fakes import PolicyModel
from theodolite.testing.fakes.policies import TAINT
from theodolite.testing.provider import Asked, FakeProvider, Says

KEY = "0123456789abcdef0123456789abcdef"
OWN = """
[panel]
subject = "shop"
[store]
key_file = "key"
raw_events = "raw"
[detectors.behavior]
enabled = true
system = "You help."
[detectors.behavior.schedule]
context_growth_tokens = 20
jitter_seconds = 0.0
cooldown_window_seconds = 0.0
"""


def events() -> list[AnyHostEvent]:
    told: list[AnyHostEvent] = [ModelCalled(model="m-1")]
    for turn in range(4):
        told += [
            MessageObserved(role="user", text=f"{TAINT} {turn}: {'ordinary words ' * 60}", source=Source.USER),
            MessageObserved(role="assistant", text="Very well.", source=Source.MODEL),
            TurnEnded(),
        ]
    return [*told, SessionEnded()]


@pytest.fixture
def lived(
    home: Path, shop: Callable[..., Path], policed: Callable[[PolicyModel], Callable[[Asked], Says]]
) -> list[Decision]:
    """Return the decisions of a live session that was probed as its schedule wants, and recorded."""
    (home / "key").write_text(KEY, encoding="utf-8")
    (home / "raw").mkdir()
    drifted = PolicyModel(templates=shipped().templates, contract="json", drift=8.0, anew=True)
    decisions: list[Decision] = []
    with FakeProvider(policed(drifted)) as provider:
        shop(provider.base_url, OWN)
        with package.load(home / "theodolite.toml") as live, live.session("s-1") as session:
            for event in events():
                decisions.append(session.observe(event))
                decisions += session.drain_sync()
    return [decision for decision in decisions if decision.signals]


def recorded(home: Path) -> list[Recorded]:
    [path] = (home / "raw").iterdir()
    with path.open("rb") as stream:
        return list(EventLines(KEY.encode()).read(stream, path.name))


@pytest.mark.parametrize("scheduled", ["true", "false"])
def test_it_comes_to_the_same_decisions(home: Path, lived: list[Decision], scheduled: str) -> None:
    """Whether or not the schedule of that session is wired again, nobody is asked, and no verifier is there."""
    held = recorded(home)
    assert sum(isinstance(item, InquirySettled) for item in held) >= 3
    assert len(lived) >= 3
    _without_models(home / "theodolite.toml", scheduled=scheduled)
    with wire(read_settings(home / "theodolite.toml"), asks=False) as instrument:
        [seen] = [one for one in replay(held, instrument.monitor) if isinstance(one, Sighting)]
    assert (seen.unreadable, list(seen.decisions)) == ((), lived)


@pytest.mark.parametrize("options", [("--no-probes",), ()])
def test_a_scan_reads_all_of_it_and_asks_nobody(
    theodolite: Callable[..., Result], home: Path, lived: list[Decision], options: tuple[str, ...]
) -> None:
    _without_models(home / "theodolite.toml")
    done = theodolite("scan", "raw", *options, "--format", "json")
    [session] = json.loads(done.stdout)["sessions"]
    assert session["unreadable"] == []
    told = [(one["seq"], one["code"]) for one in session["signals"]]
    assert told == [(decision.seq, signal.code) for decision in lived for signal in decision.signals]
    assert done.exit_code in {0, 1}


def test_without_the_detector_its_answers_cannot_be_judged_and_that_is_said(
    theodolite: Callable[..., Result], home: Path, lived: list[Decision]
) -> None:
    del lived
    _without_models(home / "theodolite.toml", enabled="false")
    done = theodolite("scan", "raw", "--format", "json")
    [session] = json.loads(done.stdout)["sessions"]
    assert {part["reason"].rpartition("; ")[2] for part in session["unreadable"]} == {
        "it was settled before, or behavior is switched off here"
    }
    assert done.exit_code == 3


def _without_models(settings: Path, *, enabled: str = "true", scheduled: str = "true") -> None:
    text = settings.read_text(encoding="utf-8").replace('subject = "shop"', "").replace('raw_events = "raw"', "")
    text = text.replace("enabled = true", f"enabled = {enabled}\nscheduled = {scheduled}")
    settings.write_text(text, encoding="utf-8")
