"""A runtime that is slow, hangs or dies while it starts: nobody waits for ever, and nothing is left behind.

The child imports `xllamacpp` from where this process finds it: here, a module of the test's own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from theodolite.core.errors import ModelError
from theodolite.core.inquiry import Query, Role
from theodolite.core.reading import Cause
from theodolite.models.local import LocalModel, child

QUERY = Query(role=Role.SUBJECT, prompt="Pay?")

NOTES = "import os, pathlib, time\npathlib.Path({noted!r}).write_text(str(os.getpid()))\n"
HANGS = NOTES + "time.sleep(600)\n"
# As native code does that loads with Python's lock held: no thread of the process runs.
HANGS_ALONE = NOTES + "import ctypes\nctypes.PyDLL(None).sleep(600)\n"
DIES = NOTES + "os._exit(3)\n"


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Put a runtime in the place of xllamacpp, and return where it notes its process."""

    def put(code: str) -> Path:
        folder, noted = tmp_path / "runtime", tmp_path / "pid"
        folder.mkdir()
        (folder / "xllamacpp.py").write_text(code.format(noted=str(noted)))
        monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
        return noted

    return put


@pytest.fixture
def model(tmp_path: Path) -> Iterator[LocalModel]:
    (tmp_path / "own.gguf").write_bytes(b"GGUF")
    made = LocalModel(tmp_path / "own.gguf")
    yield made
    made.close()


def _pid(noted: Path) -> int:
    deadline = time.monotonic() + 20.0
    while time.monotonic() < deadline:
        if noted.is_file() and (text := noted.read_text()):
            return int(text)
        time.sleep(0.01)
    raise AssertionError("the process never came to the runtime")


def _gone(pid: int, within: float = 5.0) -> bool:
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        stat = Path(f"/proc/{pid}/stat")
        try:
            os.kill(pid, 0)
            if stat.is_file() and stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return True  # ended; whoever is init here has not looked yet
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.02)
    return False


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="os.kill with 0 asks nothing there")


def test_a_runtime_that_hangs_is_given_up_after_a_time_and_ended(
    runtime: Callable[[str], Path], model: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = runtime(HANGS)
    monkeypatch.setattr(child, "PATIENCE", 1.5)
    with pytest.raises(ModelError, match=r"did not stand within 1\.5 s") as raised:
        anyio.run(model.ask, QUERY)
    assert raised.value.cause is Cause.TIMEOUT
    assert _gone(_pid(noted))
    assert model.process is None


def test_whoever_waits_with_another_is_told_the_same(
    runtime: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime(HANGS)
    monkeypatch.setattr(child, "PATIENCE", 1.0)
    (tmp_path / "own.gguf").write_bytes(b"GGUF")
    model = LocalModel(tmp_path / "own.gguf", max_concurrency=4)
    told: list[str] = []

    async def one() -> None:
        with pytest.raises(ModelError) as raised:
            await model.ask(QUERY)
        told.append(str(raised.value))

    async def four() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(one)

    started = time.monotonic()
    anyio.run(four)
    assert len(told) == 4
    assert all("did not stand within 1 s" in text for text in told)
    assert time.monotonic() - started < 4.0


def test_a_caller_leaves_at_once_and_its_thread_with_it(runtime: Callable[[str], Path], model: LocalModel) -> None:
    noted = runtime(HANGS)
    before = threading.active_count()

    async def leave() -> float:
        left = 0.0
        with anyio.move_on_after(60.0) as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(model.ask, QUERY)
                await to_thread.run_sync(_pid, noted)
                left = time.monotonic()
                scope.cancel()
        return time.monotonic() - left

    assert anyio.run(leave) < 0.5
    model.close()
    deadline = time.monotonic() + 5.0
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before


def test_close_returns_while_a_runtime_hangs_and_whoever_waits_is_told(
    runtime: Callable[[str], Path], model: LocalModel
) -> None:
    noted = runtime(HANGS)

    async def waits() -> None:
        with pytest.raises(ModelError, match="could not be started: its process was ended by signal 9"):
            await model.ask(QUERY)

    async def work() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(waits)
            await to_thread.run_sync(_pid, noted)
            started = time.monotonic()
            await to_thread.run_sync(model.close)
            assert time.monotonic() - started < 2.0

    anyio.run(work)
    assert _gone(_pid(noted))


def test_a_process_that_dies_while_it_loads_is_told(runtime: Callable[[str], Path], model: LocalModel) -> None:
    runtime(DIES)
    with pytest.raises(ModelError, match="could not be started: its process ended with status 3"):
        anyio.run(model.ask, QUERY)


def test_a_runtime_that_cannot_be_imported_is_told(runtime: Callable[[str], Path], model: LocalModel) -> None:
    runtime("raise ImportError('libgomp.so.1: cannot open shared object file')")
    with pytest.raises(ModelError, match=r"cannot load .*libgomp\.so\.1"):
        anyio.run(model.ask, QUERY)


def test_what_a_runtime_prints_is_not_taken_for_its_answer(runtime: Callable[[str], Path], model: LocalModel) -> None:
    runtime("import os\nos.write(1, b'loading\\n')\nprint('loading')\nraise ImportError('no such library')")
    with pytest.raises(ModelError, match=r"cannot load .*no such library"):
        anyio.run(model.ask, QUERY)


def test_where_no_process_can_be_started_it_is_a_model_error(
    model: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(ModelError, match="no process can be started for the embedded model: No such file"):
        anyio.run(model.ask, QUERY)


HOST = """
import sys, anyio
from pathlib import Path
from theodolite.core.inquiry import Query, Role
from theodolite.models.local import LocalModel, child
sys.path.insert(0, sys.argv[1])
child.PATIENCE = float(sys.argv[3])
anyio.run(LocalModel(Path(sys.argv[2])).ask, Query(role=Role.SUBJECT, prompt="Pay?"))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no kill -9")
@pytest.mark.parametrize(("code", "patience"), [(HANGS, 60.0), (HANGS_ALONE, 3.0)])
def test_it_ends_with_its_host_also_while_it_loads(
    runtime: Callable[[str], Path], tmp_path: Path, code: str, patience: float
) -> None:
    noted = runtime(code)
    (tmp_path / "own.gguf").write_bytes(b"GGUF")
    command = [sys.executable, "-c", HOST, str(tmp_path / "runtime"), str(tmp_path / "own.gguf"), str(patience)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as host:
        pid = _pid(noted)
        host.kill()
    assert _gone(pid, 10.0)


@pytest.mark.skipif(not Path("/proc/self/environ").is_file(), reason="this system has no /proc")
def test_it_is_shown_no_keys(
    runtime: Callable[[str], Path], model: LocalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "environ"
    runtime(f"import json, os\nopen({str(told)!r}, 'w').write(json.dumps(dict(os.environ)))\nraise ImportError")
    monkeypatch.setenv("OPENAI_API_KEY", "hunter2")
    monkeypatch.setenv("HOUSE_KEY", "hunter2")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    with pytest.raises(ModelError, match="cannot load"):
        anyio.run(model.ask, QUERY)
    shown = json.loads(told.read_text())
    assert "hunter2" not in shown.values()
    assert (shown["OMP_NUM_THREADS"], shown["OMP_WAIT_POLICY"]) == ("3", "passive")
