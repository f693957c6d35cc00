"""The recorded AgentDojo sessions: every one of them is read, and read as it was recorded."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest

from theodolite.core.event import (
    GoalStated,
    MessageObserved,
    ModelCalled,
    SessionEnded,
    ToolCallProposed,
    ToolResultObserved,
    TurnEnded,
)
from theodolite.core.reader import Unreadable
from theodolite.readers.detection import open_labels, open_recording
from theodolite.readers.jsonl import EventLines
from theodolite.readers.labelled import LabelledSessions, label
from theodolite.readers.openai_chat import OpenAIChat

DATA = Path(__file__).parents[3] / "shared" / "data" / "agentdojo"
READERS = (EventLines(), OpenAIChat(), LabelledSessions())

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not DATA.is_dir(), reason="the recorded sessions of ../shared/data are absent"),
]
every_split = pytest.mark.parametrize(("split", "sessions"), [("dev", 793), ("train", 1212)])


def lines(split: str) -> Iterator[bytes]:
    with gzip.open(DATA / f"{split}.jsonl.gz") as stream:
        yield from stream


@every_split
def test_every_session_is_read_as_it_was_recorded(split: str, sessions: int) -> None:
    found = list(open_recording(DATA / f"{split}.jsonl.gz", READERS))
    assert not [item for item in found if isinstance(item, Unreadable)]
    counts = Counter(type(item) for item in found)
    steps = [step for line in lines(split) for step in json.loads(line)["events"]]
    assert counts[GoalStated] == counts[ModelCalled] == counts[SessionEnded] == sessions
    assert counts[ToolCallProposed] == sum(step["role"] == "assistant" and "tool" in step for step in steps)
    assert counts[ToolResultObserved] == sum(step["role"] == "tool" for step in steps)
    turns = sum(len({step["turn"] for step in json.loads(line)["events"]}) for line in lines(split))
    assert counts[TurnEnded] == turns
    spoken = len({id(step) for step in steps if step["role"] == "assistant" and step.get("text")})
    assert sessions < counts[MessageObserved] <= sessions + spoken
    names = list(dict.fromkeys(item.session for item in found if not isinstance(item, Unreadable)))
    assert names == [label(line).session_id for line in lines(split)]


@every_split
def test_arguments_and_results_are_those_of_the_recording(split: str, sessions: int) -> None:
    found = open_recording(DATA / f"{split}.jsonl.gz", READERS)
    told = [
        (item.tool, item.values() if isinstance(item, ToolCallProposed) else item.text)
        for item in found
        if isinstance(item, ToolCallProposed | ToolResultObserved)
    ]
    recorded = [
        (step["tool"], step["args"] if step["role"] == "assistant" else step["text"] or step.get("error", ""))
        for line in lines(split)
        for step in json.loads(line)["events"]
        if "tool" in step
    ]
    assert told == recorded
    assert len(told) > sessions


SEEN = {"session_id", "source", "model", "suite", "goal", "events"}
STEP_SEEN = {"turn", "role", "tool", "args", "text", "error"}


@every_split
def test_the_events_are_the_same_without_the_labels(split: str, sessions: int) -> None:
    bare: list[bytes] = []
    for line in lines(split):
        session = {key: value for key, value in json.loads(line).items() if key in SEEN}
        session["events"] = [{key: step[key] for key in step.keys() & STEP_SEEN} for step in session["events"]]
        bare.append(json.dumps(session).encode())
    assert len(bare) == sessions
    told = list(LabelledSessions().read(BytesIO(b"\n".join(bare)), "f"))
    assert told == list(open_recording(DATA / f"{split}.jsonl.gz", READERS))


@pytest.mark.parametrize(("split", "clean", "drifted", "unknown"), [("dev", 614, 156, 23), ("train", 725, 400, 87)])
def test_the_labels_are_those_that_the_figures_are_counted_with(
    split: str, clean: int, drifted: int, unknown: int
) -> None:
    told = dict(open_labels(DATA / f"{split}.jsonl.gz", READERS))
    assert Counter(one.known for one in told.values()) == {"clean": clean, "drifted": drifted, None: unknown}
    assert list(told) == [label(line).session_id for line in lines(split)]
    assert all(one.task and one.slices.keys() == {"suite", "model", "kind"} for one in told.values())
