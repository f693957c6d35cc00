"""A scan that is cut short: by Ctrl-C, by a reader that goes away, by a worker that dies."""

from __future__ import annotations

import multiprocessing
import multiprocessing.util
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from theodolite.cli.choices import Jobs
from theodolite.cli.parallel import Plan, judge
from theodolite.config.settings import Settings
from theodolite.core.errors import TheodoliteError
from theodolite.core.event import AnyEvent, GoalStated, SessionEnded, Source, ToolCallProposed
from theodolite.core.recording import HEADER, encode_line
from theodolite.core.store import verify
from theodolite.reports.document import Document
from theodolite.stores.sqlite import SQLiteStore

# More than a reader may look at before it decides, so that reading begins before the writer is done.
MANY = 800


def _session(n: int) -> Iterator[AnyEvent]:
    name = f"session-{n}"
    yield GoalStated(session=name, agent="a", text="Send the invoice.", source=Source.USER)
    yield ToolCallProposed(session=name, agent="a", tool="send_invoice", source=Source.MODEL)
    yield SessionEnded(session=name, agent="a")


def _recording() -> bytes:
    return HEADER + b"".join(encode_line(event, None) for n in range(MANY) for event in _session(n))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a named pipe to hold a scan in its middle")
@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_scan_leaves_a_whole_store_and_says_what_was_done_and_how_to_go_on(
    tmp_path: Path, jobs: str, stop: signal.Signals
) -> None:
    pipe, store, report = tmp_path / "pipe.jsonl", tmp_path / "store.db", tmp_path / "report.json"
    first, last = tmp_path / "first.jsonl", tmp_path / "last.jsonl"
    for file in (first, last):
        file.write_bytes(HEADER + b"".join(encode_line(event, None) for event in _session(-1)))
    os.mkfifo(pipe)
    command = (sys.executable, "-m", "theodolite.cli", "scan", str(first), str(pipe), str(last), "--jobs", jobs)
    kept_in = ("--store", str(store), "--format", "json", "--output", str(report))
    running = subprocess.Popen([*command, *kept_in], stderr=subprocess.PIPE, text=True, start_new_session=True)
    with pipe.open("wb") as stream:
        stream.write(_recording())  # returns when all but a pipe's worth of it was read
        stream.flush()
        os.killpg(running.pid, stop)  # as a terminal or a service manager does: to every process of the command
        _, said = running.communicate(timeout=60)
    assert running.returncode == 128 + stop, said
    done, onward = said.splitlines()
    assert done.startswith("stopped: what was judged and kept until here is ")
    made = msgspec.json.decode(report.read_bytes(), type=Document)
    assert not made.summary.complete
    at = 1 if made.sessions else 0  # with several processes nothing may have come back yet
    assert onward == (
        f"to go on: {at} of 3 files {'is' if at == 1 else 'are'} done; scan again from {(first, pipe)[at]} on, "
        "with another --store, since this one holds what was kept"
    )
    with SQLiteStore(store) as kept:
        result = verify(kept)
    assert result.intact
    assert result.sessions >= made.summary.sessions


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_at_any_moment_leaves_a_whole_store(tmp_path: Path, jobs: str) -> None:
    recording = tmp_path / "many.jsonl"
    recording.write_bytes(_recording())
    for place in range(5):
        store = tmp_path / f"store-{place}.db"
        running = subprocess.Popen(
            (sys.executable, "-m", "theodolite.cli", "scan", str(recording), "--jobs", jobs, "--store", str(store)),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        while not store.exists() and running.poll() is None:
            time.sleep(0.01)
        time.sleep(0.15 * place)
        os.killpg(running.pid, signal.SIGINT)
        _, said = running.communicate(timeout=60)
        assert running.returncode in {0, 130}, said
        assert "Traceback" not in said
        with SQLiteStore(store) as kept:
            assert verify(kept).intact


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="needs masks of signals")
def test_ctrl_c_taken_by_another_thread_while_a_worker_starts_comes_when_it_has_started(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    start = multiprocessing.util.spawnv_passfds

    def interrupted(path: bytes, arguments: Sequence[str], files: Sequence[int]) -> int:
        started = start(path, arguments, files)
        if "spawn_main" in " ".join(map(os.fsdecode, arguments)):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)  # the other thread takes it, and this one is told
        return started

    monkeypatch.setattr(multiprocessing.util, "spawnv_passfds", interrupted)
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            list(judge((event for n in range(3) for event in _session(n)), Plan(settings=Settings()), jobs=Jobs()))
    finally:
        over.set()
        other.join()
    assert "Traceback" not in capfd.readouterr().err


def test_a_reader_that_has_had_enough_is_no_error(recordings: Path) -> None:
    for form in ("text", "json", "jsonl"):
        command = [sys.executable, "-m", "theodolite.cli", "scan", str(recordings), "-f", form]
        read, write = os.pipe()
        os.close(read)  # nobody will ever read
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        os.close(write)
        assert done.returncode == 141
        assert "Traceback" not in done.stderr
        assert "BrokenPipe" not in done.stderr


def test_a_worker_that_dies_is_a_clear_error() -> None:
    def recorded() -> Iterator[AnyEvent]:
        for n in range(MANY):
            yield from _session(n)
            if n == MANY // 2:
                for worker in multiprocessing.active_children():
                    worker.kill()

    with pytest.raises(TheodoliteError, match="a worker process died"):
        list(judge(recorded(), Plan(settings=Settings(plugins=False)), jobs=Jobs()))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="tells the children of a process by /proc")
def test_workers_end_with_a_scan_that_is_killed(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    command = (sys.executable, "-m", "theodolite.cli", "scan", str(pipe), "--jobs", "2")
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with pipe.open("wb") as stream:
        stream.write(_recording())  # returns when all but a pipe's worth of it was read: some went to workers
        stream.flush()
        begun = _until(lambda: _workers(running.pid), some=True)
        running.kill()  # nothing of its own runs after that
        running.wait(timeout=60)
        left = _until(lambda: [worker for worker in begun if _parent(worker)], some=False)
    for worker in left:
        os.kill(worker, signal.SIGKILL)
    assert begun
    assert left == []


def _until(found: Callable[[], list[int]], *, some: bool) -> list[int]:
    """Return what is found once there is some, or none; what there is after ten seconds."""
    end = time.monotonic() + 10.0
    while bool(processes := found()) is not some and time.monotonic() < end:
        time.sleep(0.05)
    return processes


def _workers(parent: int) -> list[int]:
    found = [int(place.name) for place in Path("/proc").glob("[0-9]*")]
    return [process for process in found if _parent(process) == str(parent) and _is_worker(process)]


def _parent(process: int) -> str:
    """Return who started a process that runs; "" where it is over."""
    try:
        state, parent = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if state == "Z" else parent


def _is_worker(process: int) -> bool:
    return b"spawn_main" in Path(f"/proc/{process}/cmdline").read_bytes()
