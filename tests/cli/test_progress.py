"""How far a scan is: on a terminal, in a log, and how long it will still take."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from theodolite.cli import progress as progress_module
from theodolite.cli.counting import counting
from theodolite.cli.progress import Probes, Progress
from theodolite.core.event import GoalStated
from theodolite.core.reader import Unreadable
from theodolite.core.recording import HEADER, encode_line
from theodolite.readers.detection import open_recording
from theodolite.readers.jsonl import EventLines
from theodolite.testing.fakes.clock import FakeClock

PARTS = [Unreadable(file="f", line=n, reason="no") for n in range(300)]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _terminal(monkeypatch: pytest.MonkeyPatch) -> _Terminal:
    """Return what stands in for a terminal on standard error. No fixture: pytest takes that back before the test."""
    made = _Terminal()
    monkeypatch.setattr("sys.stderr", made)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return made


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Return four files of a megabyte each."""
    made = [tmp_path / f"{n}.jsonl" for n in range(4)]
    for file in made:
        file.write_bytes(bytes(1_000_000))
    return made


def test_a_terminal_shows_a_bar_after_a_second(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _terminal(monkeypatch)
    clock = FakeClock()
    with Progress(files, clock=clock) as progress:
        assert list(progress.counting(PARTS)) == PARTS
        assert terminal.getvalue() == ""
        progress.filed()
        clock.now += 30.0
        assert list(progress.counting(PARTS)) == PARTS
    assert "1:30 left, 1 of 4 files, 1.0 of 4.0 MB, 0 sessions" in terminal.getvalue()


def test_a_bar_keeps_out_of_a_report_that_streams_to_the_same_terminal(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = _terminal(monkeypatch)
    monkeypatch.setattr("sys.stdout", terminal)
    clock = FakeClock()
    with Progress(files, streams=True, clock=clock) as progress:
        clock.now += 30.0
        assert list(progress.counting(PARTS)) == PARTS
    assert terminal.getvalue() == ""


def test_a_log_gets_a_line_every_ten_seconds(files: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    clock = FakeClock()
    with Progress(files, clock=clock) as progress:
        for second in range(1, 25):
            clock.now += 1.0
            progress.sessions = second
            progress.reached(second * 40_000)
            list(progress.counting(PARTS))
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "scanning: 1:30 left, 0 of 4 files, 0.4 of 4.0 MB, 10 sessions, 2,800 events, 280 a second",
        "scanning: 1:20 left, 0 of 4 files, 0.8 of 4.0 MB, 20 sessions, 5,800 events, 290 a second",
    ]


def test_a_short_scan_says_nothing(files: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    clock = FakeClock(step=0.001)
    with Progress(files, clock=clock) as progress:
        list(progress.counting(PARTS))
    assert capsys.readouterr().err == ""


def test_the_time_left_goes_by_the_bytes_and_not_by_the_files(files: list[Path]) -> None:
    files[3].write_bytes(bytes(7_000_000))
    clock = FakeClock()
    progress = Progress(files, clock=clock)
    assert progress.left() is None
    clock.now += 2.0
    progress.filed()
    assert progress.left() == pytest.approx(18.0)
    progress.reached(1_000_000)
    assert progress.left() == pytest.approx(8.0)


def test_probes_are_shown_with_the_time_left(files: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    clock = FakeClock()
    with Progress(files, doing="probing", clock=clock) as progress:
        progress.filed()
        progress.probes.sessions, progress.probes.foreseen = 3, 6
        clock.now += 10.0
        progress.show()
        progress.probes.over, progress.probes.answered = 2, 4
        clock.now += 10.0
        progress.show()
        for _ in files[1:]:
            progress.filed()
        clock.now += 10.0
        progress.show()
    assert capsys.readouterr().err.splitlines() == [
        "probing: 0 of about 24 calls answered, 0 of about 12 sessions probed, 1 of 4 files",
        "probing: 1:40 left, 4 of about 24 calls answered, 2 of about 12 sessions probed, 1 of 4 files",
        "probing: 0:15 left, 4 of about 6 calls answered, 2 of 3 sessions probed, 4 of 4 files",
    ]


def test_nobody_guesses_how_many_a_pipe_will_bring(files: list[Path], tmp_path: Path) -> None:
    progress = Progress([*files, tmp_path / "gone"], clock=FakeClock())
    progress.probes.sessions = 1
    progress.filed()
    progress.probes.foreseen = 66
    assert str(progress) == "0 of about 66 calls answered, 0 of 1 or more sessions probed, 1 of 5 files"


@pytest.mark.parametrize(("answered", "left"), [(1, "11:55"), (22, "0:22"), (65, "0:00")])
def test_the_calls_of_a_single_session_move_and_tell_the_time_left(
    files: list[Path], monkeypatch: pytest.MonkeyPatch, answered: int, left: str
) -> None:
    terminal = _terminal(monkeypatch)
    clock = FakeClock()
    with Progress(files[:1], doing="probing", clock=clock) as progress:
        progress.filed()
        progress.probes.sessions, progress.probes.foreseen = 1, 66
        clock.now += 11.0
        progress.probes.answered = answered
        progress.show()
    assert f"{left} left, {answered} of about 66 calls answered, 0 of 1 session probed" in terminal.getvalue()


def test_how_long_it_takes_is_said_once_after_the_first_call(
    files: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    clock = FakeClock()
    progress = Progress(files[:1], doing="probing", clock=clock)
    progress.filed()
    probes = progress.probes
    probes.sessions, probes.foreseen = 1, 66
    progress.show()
    assert capsys.readouterr().err == ""
    probes.answered, probes.first = 1, 11.0
    progress.show()
    progress.show()
    assert capsys.readouterr().err == (
        "probing: about 66 calls, one at a time; the first took 11.0 s, and all will take about 12:06\n"
    )


@pytest.mark.parametrize(("first", "at_once"), [(0.5, 1), (11.0, 16)])
def test_what_takes_less_than_a_minute_is_not_foretold(
    files: list[Path], capsys: pytest.CaptureFixture[str], first: float, at_once: int
) -> None:
    progress = Progress(files[:1], clock=FakeClock())
    progress.filed()
    progress.probes = Probes(sessions=1, foreseen=66, answered=1, first=first, at_once=at_once)
    progress.show()
    assert capsys.readouterr().err == ""


def test_what_can_be_counted_is_shown_with_the_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    clock = FakeClock()
    for _ in counting(range(1_000), "records", 1_000, clock=clock):
        clock.now += 0.05
    assert capsys.readouterr().err.splitlines() == [
        "200 of 1,000 records, 0:40 left",
        "400 of 1,000 records, 0:30 left",
        "600 of 1,000 records, 0:20 left",
        "800 of 1,000 records, 0:10 left",
    ]


def test_nobody_guesses_where_a_file_has_no_size_or_all_was_read(files: list[Path], tmp_path: Path) -> None:
    clock = FakeClock()
    unsure = Progress([*files, tmp_path / "gone"], clock=clock)
    unsure.filed()
    clock.now += 1.0
    assert unsure.left() is None
    assert "MB" not in str(unsure)
    done = Progress(files, clock=clock)
    for _ in files:
        done.filed()
    clock.now += 1.0
    assert done.left() is None


@pytest.mark.parametrize("packed", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_reader_says_how_many_bytes_of_the_file_were_read(tmp_path: Path, packed: Callable[[bytes], bytes]) -> None:
    lines = HEADER + b"".join(encode_line(GoalStated(session=f"s{n}", text="x" * 50), None) for n in range(2_000))
    file = tmp_path / "many.jsonl"
    file.write_bytes(packed(lines))
    places: list[int] = []
    read = open_recording(file, [EventLines()], reached=places.append)
    next(read)
    assert 0 < places[-1] <= file.stat().st_size
    assert len(list(read)) > 2_000
    assert places == sorted(places)
    assert places[-1] == file.stat().st_size


def test_a_scan_tells_its_progress_from_its_own_files(
    theodolite: Callable[..., Result], recordings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_module, "_LINES", 0.0)
    monkeypatch.setattr(progress_module, "EVERY", 1)
    done = theodolite("scan", recordings)
    lines = [line for line in done.stderr.splitlines() if line.startswith("scanning: ")]
    assert "2 of 3 files, 0.0 of 0.0 MB, 2 sessions" in lines[-1]
    assert done.exit_code == 1
