"""A scan that is cut short: by Ctrl-C, by a reader that goes away, by a worker that dies."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

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
def test_ctrl_c_leaves_a_whole_store_and_says_what_was_done(tmp_path: Path, jobs: str) -> None:
    pipe, store, report = tmp_path / "pipe.jsonl", tmp_path / "store.db", tmp_path / "report.json"
    os.mkfifo(pipe)
    command = (sys.executable, "-m", "theodolite.cli", "scan", str(pipe), "--jobs", jobs)
    kept_in = ("--store", str(store), "--format", "json", "--output", str(report))
    running = subprocess.Popen([*command, *kept_in], stderr=subprocess.PIPE, text=True, start_new_session=True)
    with pipe.open("wb") as stream:
        stream.write(_recording())  # returns when all but a pipe's worth of it was read
        stream.flush()
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to every process of the command
        _, said = running.communicate(timeout=60)
    assert running.returncode == 130, said
    assert said.startswith("stopped: what was judged and kept until here is ")
    assert "Traceback" not in said
    made = msgspec.json.decode(report.read_bytes(), type=Document)
    assert not made.summary.complete
    with SQLiteStore(store) as kept:
        result = verify(kept)
    assert result.intact
    assert result.sessions >= made.summary.sessions


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
        list(judge(recorded(), Plan(settings=Settings(plugins=False)), jobs=1))
