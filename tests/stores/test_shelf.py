"""What is kept last of a session is what is held of it: also after a crash, beside other processes, on a full disk."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theodolite.core.errors import StoreError
from theodolite.stores.sealing import SealedShelf, Sealer

SHELVER = Path(__file__).with_name("shelver.py")
KEY = "a key that only the operator has"
SEALER = Sealer(KEY.encode())

posix = pytest.mark.skipif(os.name != "posix", reason="the system has no such modes")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


@pytest.fixture
def shelf(folder: Path) -> SealedShelf:
    return SealedShelf(folder, SEALER)


@given(
    st.lists(
        st.tuples(st.sampled_from(["keep", "drop", "reopen"]), st.sampled_from(["a", "b", "\ud800", ""]), st.binary()),
        max_size=10,
    )
)
@settings(max_examples=20, deadline=None)  # each step waits for the disk
def test_what_was_kept_last_is_what_is_held(steps: list[tuple[str, str, bytes]]) -> None:
    wanted: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as place:
        shelf = SealedShelf(Path(place), SEALER)
        for step, session, saved in steps:
            if step == "keep":
                shelf.keep(session, saved)
                wanted[session] = saved
            elif step == "drop":
                shelf.drop(session)
                wanted.pop(session, None)
            else:
                shelf = SealedShelf(Path(place), SEALER)
        assert sorted(shelf.held()) == sorted(wanted.values())


@posix
def test_nothing_of_a_session_can_be_read_by_others(folder: Path, shelf: SealedShelf) -> None:
    shelf.keep("session-17", b"the secret word")
    (file,) = folder.iterdir()
    assert (folder.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)
    assert "17" not in file.name.replace(SEALER.name("session-17"), "")
    assert b"secret" not in file.read_bytes()
    assert b"session" not in file.read_bytes()


@posix
def test_a_folder_that_is_open_to_others_is_refused(folder: Path) -> None:
    folder.mkdir(mode=0o755)
    with pytest.raises(StoreError, match="is open to others: chmod 700"):
        SealedShelf(folder, SEALER)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be used as a shelf"):
        SealedShelf(tmp_path / "not" / "there", SEALER)
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be used as a shelf"):
        SealedShelf(tmp_path / "file", SEALER)


def test_what_does_not_open_is_told_after_all_that_does(folder: Path, shelf: SealedShelf) -> None:
    for number in range(6):
        shelf.keep(f"s-{number}", b"%d" % number)
    files = [folder / f"{SEALER.name(f's-{number}')}.sealed" for number in range(6)]
    files[1].write_bytes(files[1].read_bytes()[:-9])
    files[2].write_bytes(files[0].read_bytes())  # another session's
    SealedShelf(folder, Sealer(b"another key")).keep("s-9", b"9")
    held = shelf.held()
    assert sorted(next(held) for _ in range(4)) == [b"0", b"3", b"4", b"5"]
    with pytest.raises(StoreError, match="holds sessions that cannot be read") as told:
        next(held)
    assert all(file.name in str(told.value) for file in files[1:3])
    assert str(told.value).count(".sealed: ") == 3
    assert "is sealed with the key" in str(told.value)
    assert len(list(folder.iterdir())) == 7  # nothing was taken away


@posix
@pytest.mark.parametrize("kind", ["pipe", "socket", "link", "folder"])
def test_what_is_no_regular_file_is_told_and_neither_waited_for_nor_followed(
    folder: Path, shelf: SealedShelf, kind: str
) -> None:
    shelf.keep("s-1", b"kept")
    strange = folder / f"{SEALER.name('s-0')}.sealed"
    with socket.socket(socket.AF_UNIX) as listening, contextlib.chdir(folder):
        if kind == "pipe":
            os.mkfifo(strange)
        elif kind == "socket":
            listening.bind(strange.name)
        elif kind == "link":
            strange.symlink_to(f"{SEALER.name('s-1')}.sealed")
        else:
            strange.mkdir()
        held = shelf.held()
        assert next(held) == b"kept"
        with pytest.raises(StoreError, match=rf"{strange.name}: it is no regular file.*take it away"):
            next(held)


@posix
def test_what_takes_the_place_of_a_file_at_the_last_moment_is_not_waited_for(
    folder: Path, shelf: SealedShelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.keep("s-1", b"kept")
    (file,) = folder.iterdir()
    regular = file.lstat()
    file.unlink()
    os.mkfifo(file)

    def before(_: Path) -> os.stat_result:
        return regular

    monkeypatch.setattr(Path, "lstat", before)
    with pytest.raises(StoreError, match="it is no regular file"):
        list(shelf.held())


def test_what_a_killed_process_left_half_written_is_swept_and_what_is_not_ours_is_left(
    folder: Path, shelf: SealedShelf
) -> None:
    shelf.keep("s-1", b"kept")
    for name in ("README", f"{SEALER.name('s-1')}.0123.part", "other.sealed"):
        (folder / name).write_bytes(b"half")
    assert list(shelf.held()) == [b"kept"]
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        ["README", "other.sealed", f"{SEALER.name('s-1')}.sealed"]
    )


def test_threads_that_keep_drop_and_look_at_once_do_not_meet(folder: Path, shelf: SealedShelf) -> None:
    def work(number: int) -> None:
        for turn in range(15):
            shelf.keep(f"s-{number}", b"%d %d" % (number, turn))
            shelf.keep("shared", b"shared")
            assert b"shared" in list(SealedShelf(folder, SEALER).held()) or turn == 0
            if turn % 3 == 1:
                shelf.drop(f"s-{number}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert sorted(shelf.held()) == [b"0 14", b"1 14", b"2 14", b"3 14", b"shared"]


def test_a_folder_that_is_gone_is_told_by_each(folder: Path, shelf: SealedShelf) -> None:
    shelf.keep("s-1", b"kept")
    folder.rename(folder.with_name("elsewhere"))
    with pytest.raises(StoreError, match=r"cannot hold session 's-1'.*make it writable"):
        shelf.keep("s-1", b"later")
    with pytest.raises(StoreError, match="cannot be read"):
        list(shelf.held())
    shelf.drop("s-1")


@pytest.mark.skipif(sys.platform != "linux", reason="only there does every system have a device that is full")
def test_a_full_disk_leaves_what_was_held(folder: Path, shelf: SealedShelf) -> None:
    script = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from theodolite.core.errors import StoreError\n"
        "from theodolite.stores.sealing import SealedShelf, Sealer\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "shelf = SealedShelf(Path(sys.argv[1]), Sealer(sys.argv[2].encode()))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n"
        "try: shelf.keep('s-1', bytes(100_000))\n"
        "except StoreError as error: print(error)\n"
    )
    shelf.keep("s-1", b"before")
    command = [sys.executable, "-c", script, str(folder), KEY]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "cannot hold session 's-1': File too large; free space" in done.stdout
    assert list(shelf.held()) == [b"before"]
    assert len(list(folder.iterdir())) == 1


TRACED = """
import os, stat, sys
from pathlib import Path
from theodolite.stores.sealing import SealedShelf, Sealer

def synced(descriptor, sync=os.fsync):
    sync(descriptor)
    print("fsync", "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")

def touched(event, arguments):
    if event in {"os.rename", "os.remove", "os.truncate"} and sys.argv[1] in str(arguments[0]):
        print(event)

shelf = SealedShelf(Path(sys.argv[1]), Sealer(sys.argv[2].encode()))
os.fsync = synced
sys.addaudithook(touched)
for work in (lambda: shelf.keep("s-1", b"saved"), lambda: shelf.keep("s-1", b"again"), lambda: shelf.drop("s-1")):
    work()
    print("returned")
"""


@posix
def test_what_is_kept_or_dropped_is_on_the_disk_when_it_returns(folder: Path) -> None:
    """The file is synced before it gets its name, and the folder after each name that came or went."""
    command = [sys.executable, "-c", TRACED, str(folder), KEY]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    kept = ["fsync file", "os.rename", "fsync folder", "returned"]
    assert done.stdout.splitlines() == [*kept, *kept, "os.remove", "fsync folder", "returned"]
    assert list(folder.iterdir()) == []


def shelve_and_be_killed(folder: Path, seed: str, lines: int) -> dict[str, set[str]]:
    """Run two processes on one folder, kill them, and return what may be held of each session: a turn, or `-`."""
    may: dict[str, set[str]] = {}
    children = [
        subprocess.Popen(
            [sys.executable, str(SHELVER), str(folder), KEY, name, f"{seed} {name}"], stdout=subprocess.PIPE
        )
        for name in ("one", "two")
    ]
    for child in children:
        assert child.stdout is not None
        told = [child.stdout.readline() for _ in range(lines)]
        child.send_signal(signal.SIGKILL)
        told += child.stdout.readlines()
        child.wait()
        child.stdout.close()
        for line in told:
            if line.endswith(b"\n"):
                did, session, turn = line.decode().split()
                may[session] = {turn} if did == "did" else {*may.get(session, {"-"}), turn}
    return may


def check_kills(folder: Path, times: int) -> None:
    for time in range(times):
        folder.mkdir(mode=0o700, exist_ok=True)
        for file in folder.iterdir():
            file.unlink()
        may = shelve_and_be_killed(folder, str(time), 40 + time * 7)
        held = dict(saved.decode().split(" ", 2)[:2] for saved in SealedShelf(folder, SEALER).held())
        for session, turns in may.items():
            assert held.get(session, "-") in turns, (session, turns, held)
        assert held.keys() <= may.keys()


def test_a_kill_leaves_what_was_kept_last(folder: Path) -> None:
    check_kills(folder, times=1)


@pytest.mark.slow
def test_thirty_kills_leave_what_was_kept_last(folder: Path) -> None:
    check_kills(folder, times=30)
