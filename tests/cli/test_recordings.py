"""Sessions of several files: each has an id of its own, and says where it was read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.cli.recordings import Recordings, session_names
from theodolite.core.event import GoalStated, SessionEnded
from theodolite.core.recording import HEADER, encode_line
from theodolite.readers.jsonl import EventLines
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.replay import replay

NAMES = [
    Path(folder, stem + ending)
    for folder in ("", "a", "b", "a/b", "log")
    for stem in ("log", "run")
    for ending in (".json", ".jsonl", ".json.gz")
]
PATHS = st.lists(st.sampled_from(NAMES), unique=True, max_size=8)


def _written(folder: Path, *sessions: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "log.jsonl"
    events = [event for name in sessions for event in (GoalStated(session=name, text="x"), SessionEnded(session=name))]
    path.write_bytes(HEADER + b"".join(encode_line(event, None) for event in events))
    return path


def _seen(files: Sequence[Path]) -> list[tuple[str, str, str]]:
    held = Recordings(files, [EventLines()])
    items = [item for file in files for item in held.read(file)]
    origins = [(item.session, held.origin(item.session)) for item in replay(items, Monitor())]
    return [(session, origin.file, origin.reader) for session, origin in origins]


@given(PATHS)
def test_names_of_files_are_unique_and_do_not_depend_on_their_order(files: list[Path]) -> None:
    names = session_names(files)
    assert len(set(names.values())) == len(files)
    assert session_names(files[::-1]) == names


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (("a/log.json", "b/run.json"), ["log", "run"]),
        (("a/log.json", "b/log.json.gz"), ["a/log", "b/log"]),
        (("a/log.json", "a/log.jsonl", "b/log.json"), ["a/log.json", "a/log.jsonl", "b/log"]),
    ],
)
def test_a_name_is_as_short_as_it_can_be(files: Sequence[str], names: list[str]) -> None:
    assert list(session_names(map(Path, files)).values()) == names


def test_an_id_that_comes_again_is_another_session(tmp_path: Path) -> None:
    one, two = _written(tmp_path / "one", "s", "t", "s"), _written(tmp_path / "two", "s")
    assert _seen([one, two]) == [
        (session, str(file), "theodolite-events")
        for session, file in (("s", one), ("t", one), ("s~2", one), ("s~3", two))
    ]


def test_a_suffix_that_is_taken_is_not_given_again(tmp_path: Path) -> None:
    files = [_written(tmp_path / "one", "s~2", "s"), _written(tmp_path / "two", "s")]
    assert [session for session, _, _ in _seen(files)] == ["s~2", "s", "s~3"]


def test_a_session_without_an_id_is_named_after_its_file(tmp_path: Path) -> None:
    files = [_written(tmp_path / "one", ""), _written(tmp_path / "two", "")]
    assert [session for session, _, _ in _seen(files)] == ["one/log", "two/log"]
