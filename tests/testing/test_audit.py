"""The watch over input and output sees what happens inside, on this thread, and nothing else."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from theodolite.testing.checks.audit import touches


def test_a_file_is_seen_and_not_opened(tmp_path: Path) -> None:
    file = tmp_path / "kept.txt"
    with touches() as seen, suppress(OSError):
        file.write_text("no")
    assert seen == [f"open({file})"]
    assert not file.exists()


def test_a_process_and_a_socket_are_seen() -> None:
    with touches() as seen:
        with suppress(OSError):
            subprocess.run([sys.executable, "-c", ""], check=False)
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", 9), timeout=0.01)
    assert {entry.partition("(")[0] for entry in seen} & {"subprocess.Popen", "os.posix_spawn"}
    assert any(entry.startswith("socket.") for entry in seen)


def test_outside_and_on_other_threads_everything_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "kept.txt"
    go = threading.Event()

    def write() -> None:
        go.wait()
        file.write_text("elsewhere")

    thread = threading.Thread(target=write)
    thread.start()
    with touches() as seen:
        go.set()
        thread.join()
    assert seen == []
    assert file.read_text() == "elsewhere"


def test_code_may_be_imported_inside() -> None:
    sys.modules.pop("this", None)
    with touches() as seen, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        __import__("this")
    assert seen == []
