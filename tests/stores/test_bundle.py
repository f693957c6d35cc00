"""The bundle verifies with nothing but Python, and whatever was done to it shows."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import time
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from theodolite.core.store import Entry, Kind, verify
from theodolite.stores.bundle import write_bundle
from theodolite.stores.bundle.verify import canonical, is_object, main, parsed
from theodolite.stores.memory import MemoryStore
from theodolite.stores.sealing import SealedStore, Sealer
from theodolite.stores.sqlite import SQLiteStore

Files = dict[str, bytes]
Entries = Callable[..., Entry]

KEY = b"a key that only the operator has"
SCRIPT = Path(main.__code__.co_filename)
CHAINED = ("records.jsonl", "heads.jsonl", "registry.json")


def filled(key: bytes | None = KEY, *, erases: bool = True) -> MemoryStore:
    """Return a store of three sessions: one plain, one erased and gone on with, one of what a store may hold at all."""
    numbers = iter(range(10**6))
    store = MemoryStore(key, salts=lambda: f"{next(numbers):032x}", clock=lambda: 1.8e9)
    said = b'{"decision":{"signals":[{"said":{"detector":"margin","version":"1"},"calibration":"c-1"}]},"quiet":2}'
    for n in range(4):
        for session, payload in (("s-1", said), ("s-2", b'{"n":%d}' % n), ('odd "\\\x1b\u2028\x7f', b"\xff%d" % n)):
            codes = ("a.b", "c\n.d") if n % 2 else ()
            store.append(Entry(session=session, at=1e16 * n + 0.1, kind=Kind.EVENT, payload=Raw(payload), codes=codes))
    if erases:
        store.erase("s-2", reason="asked for by M\u00fcller")
        store.append(Entry(session="s-2", at=-0.5, kind=Kind.DECISION, payload=Raw(b"{}")))
    return store


def made(store: MemoryStore, key: bytes | None = KEY, calibration: bytes | None = None) -> bytes:
    stream = io.BytesIO()
    write_bundle(store, stream, about={"theodolite": "0", "profile": "standard"}, key=key, calibration=calibration)
    return stream.getvalue()


def unpacked(content: bytes) -> Files:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(files: Iterable[tuple[str, bytes]]) -> bytes:
    """Return a zip file that is laid out as the writer's is."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files:
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            entry.compress_type, entry.external_attr, entry.create_system = zipfile.ZIP_DEFLATED, 0o100644 << 16, 3
            with archive.open(entry, "w", force_zip64=True) as file:
                file.write(content)
    return stream.getvalue()


def refit(files: Files) -> Files:
    """Make manifest and seal fit what the files have become: what somebody does who has no key."""
    manifest = json.loads(files["manifest.json"])
    manifest["files"] = {name: hashlib.sha256(files[name]).hexdigest() for name in manifest["files"]}
    manifest["sizes"] = {name: len(files[name]) for name in manifest["files"]}
    manifest["records"] = files["records.jsonl"].count(b"\n")
    content = canonical(manifest).encode()
    seal = b"sha256 %s\nhmac-sha256 -\n" % hashlib.sha256(content + b"-").hexdigest().encode()
    return {**files, "manifest.json": content, "seal.txt": seal}


@pytest.fixture(scope="module")
def bundle() -> bytes:
    return made(filled(), calibration=b'{"id":"c-1"}')


@pytest.fixture(scope="module")
def files(bundle: bytes) -> Files:
    return unpacked(bundle)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("auditor")
    (folder / "operator.key").write_bytes(KEY + b"\n")
    (folder / "other.key").write_bytes(b"another key, as long as the first")
    return folder


@pytest.fixture(scope="module")
def look(place: Path) -> Callable[..., int]:
    """Return what verifies files in a folder, in this process, and returns the exit status."""
    folder = place / "unpacked"
    folder.mkdir()
    there: Files = {}

    def run(files: Files, *arguments: str) -> int:
        for name in there.keys() - files.keys():
            (folder / name).unlink()
            del there[name]
        for name, content in files.items():
            if there.get(name) != content:
                (folder / name).write_bytes(content)
                there[name] = content
        return main([str(folder), *arguments])

    return run


@pytest.fixture(scope="module", params=["zip", "folder"])
def alone(
    request: pytest.FixtureRequest, place: Path, bundle: bytes
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return what runs the bundle's own script as an auditor does: on a Python that has nothing else."""
    folder = place / f"alone-{request.param}"
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        if request.param == "folder":
            archive.extractall(folder)
        else:
            archive.extract("verify.py", folder)
            (folder / "bundle.zip").write_bytes(bundle)

    def run(*arguments: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
        what = [] if request.param == "folder" else ["bundle.zip"]
        command = [python, "-I", "-S", "verify.py", *what, *arguments]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)

    return run


def test_it_verifies_where_nothing_is_installed(alone: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    importing = [sys.executable, "-I", "-S", "-c", "import theodolite"]
    assert subprocess.run(importing, capture_output=True, timeout=60, check=False).returncode == 1
    done = alone()
    assert (done.returncode, done.stderr) == (0, "")
    assert "intact\n  3 sessions, 14 records, the payloads of 4 of them erased\n" in done.stdout
    assert "not checked, since no key was given" in done.stdout
    assert "Not shown: a store or a bundle that was computed anew" in done.stdout


def test_with_the_key_the_seals_are_checked(alone: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    right, wrong = alone("--key-file", "../operator.key"), alone("--key-file", "../other.key")
    assert (right.returncode, wrong.returncode) == (0, 1)
    assert "seals: checked with the key" in right.stdout
    assert wrong.stdout.count("it is not sealed with this key") == 5  # manifest, three heads, registry


def test_it_runs_on_the_oldest_python_that_it_names(alone: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    python = shutil.which("python3.8")
    if python is None or subprocess.run([python, "-V"], capture_output=True, check=False).returncode:
        pytest.skip("there is no Python 3.8 on this machine")
    assert alone("--key-file", "../operator.key", python=python).returncode == 0


def test_the_script_is_written_for_the_oldest_python_and_imports_nothing_else() -> None:
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"), feature_version=(3, 8))
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            imported.add(str(node.module).split(".")[0])
    assert imported <= sys.stdlib_module_names
    assert "theodolite" not in imported


def test_one_store_gives_the_same_bytes_each_time() -> None:
    assert made(filled()) == made(filled())
    assert made(filled()) != made(filled(), key=b"another key")


def test_its_files_carry_one_date(bundle: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {
            (2107, 12, 31, 0, 0, 0)
        }  # 3e16 is beyond all dates
    stream = io.BytesIO()
    write_bundle(filled(), stream, about={}, date=1.7e9)
    with zipfile.ZipFile(stream) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(2023, 11, 14, 22, 13, 20)}


def test_it_says_what_it_was_made_of(files: Files) -> None:
    manifest = json.loads(files["manifest.json"])
    assert manifest["about"] == {"profile": "standard", "theodolite": "0"}
    assert (manifest["detectors"], manifest["calibrations"]) == ({"margin": ["1"]}, ["c-1"])
    assert (manifest["records"], manifest["sessions"]) == (14, None)
    assert files["calibration.json"] == b'{"id":"c-1"}'
    assert set(files) == {*manifest["files"], "manifest.json", "seal.txt"}


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_a_byte_flipped_anywhere_shows(
    data: st.DataObject, files: Files, look: Callable[..., int], place: Path
) -> None:
    name = data.draw(st.sampled_from(sorted(files)))
    key = data.draw(st.sampled_from([(), ("--key-file", str(place / "operator.key"))]))
    assert look({**files, name: _flipped(files[name], data)}, *key) == 1


def _flipped(content: bytes, data: st.DataObject) -> bytes:
    flipped = bytearray(content)
    flipped[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    return bytes(flipped)


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_a_byte_flipped_in_the_chain_shows_where_all_digests_were_made_to_fit(
    data: st.DataObject, files: Files, look: Callable[..., int]
) -> None:
    name = data.draw(st.sampled_from(CHAINED))
    changed = {**files, name: _flipped(files[name], data)}
    if _unsealed(changed[name]) != _unsealed(files[name]):
        assert look(refit(changed)) == 1


def _unsealed(content: bytes) -> list[object]:
    """Return what lines say but for their seals, which nobody without the key can check."""
    lines: list[object] = []
    for line in content.split(b"\n"):
        row = parsed(line)
        lines.append({key: value for key, value in row.items() if key != "seal"} if is_object(row) else line)
    return lines


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_records_removed_reordered_added_or_moved_show_where_all_digests_were_made_to_fit(
    data: st.DataObject, files: Files, look: Callable[..., int]
) -> None:
    name = data.draw(st.sampled_from(["records.jsonl", "heads.jsonl"]))
    before = files[name].splitlines(keepends=True)
    lines = list(before)
    for _ in range(data.draw(st.integers(1, 3))):
        what = data.draw(st.sampled_from(["remove", "swap", "again"]))
        one, other = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        if what == "remove" and len(lines) > 1:
            del lines[one]
        elif what == "swap":
            lines[one], lines[other] = lines[other], lines[one]
        else:
            lines.insert(other, lines[one])
    if lines != before:
        assert look(refit({**files, name: b"".join(lines)})) == 1


def test_a_session_whose_records_stand_there_twice_shows(
    files: Files, look: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = files["records.jsonl"].splitlines(keepends=True)
    again = [line for line in lines if row(line[:-1])["session"] == "s-1"]
    assert not lines[-1].startswith(again[0][:20])
    assert look(refit({**files, "records.jsonl": b"".join([*lines, *again])})) == 1
    told = capsys.readouterr().out
    assert "session 's-1': its records stand in two places" in told
    assert ": 1 problem\n" in told  # each link and each end is as it should be


def test_every_way_to_change_a_field_shows(files: Files, look: Callable[..., int]) -> None:
    lines = files["records.jsonl"].splitlines()
    # An erased one, the erasure, and one with codes.
    for number in (5, 9, 12):
        record = json.loads(lines[number])
        for field, value in record.items():
            others: list[object] = [None, 0, "", "x", [], {"base64": "eA=="}, 0.5, not value]
            for other in others:
                if other != value or type(other) is not type(value):
                    changed = json.dumps({**record, field: other}, ensure_ascii=False, separators=(",", ":")).encode()
                    content = b"\n".join([*lines[:number], changed, *lines[number + 1 :], b""])
                    assert look(refit({**files, "records.jsonl": content})) == 1, (number, field, other)


def test_an_erased_payload_put_back_or_another_taken_shows(files: Files, look: Callable[..., int]) -> None:
    lines = files["records.jsonl"].splitlines()
    before = {row(line)["hash"]: line for line in unpacked(made(filled(erases=False)))["records.jsonl"].splitlines()}
    erased = [number for number, line in enumerate(lines) if row(line)["payload"] is None]
    assert len(erased) == 4
    for number in erased:
        back = [*lines[:number], before[row(lines[number])["hash"]], *lines[number + 1 :], b""]
        assert look(refit({**files, "records.jsonl": b"\n".join(back)})) == 1
    for number in set(range(len(lines))) - set(erased):
        emptied = canonical({**row(lines[number]), "payload": None, "salt": None}).encode()
        taken = [*lines[:number], emptied, *lines[number + 1 :], b""]
        assert look(refit({**files, "records.jsonl": b"\n".join(taken)})) == 1


def row(line: bytes) -> dict[str, object]:
    found = parsed(line)
    assert is_object(found)
    return found


@pytest.mark.parametrize(
    "name", ["records.jsonl", "heads.jsonl", "registry.json", "seal.txt", "verify.py", "README.txt"]
)
def test_a_file_that_is_gone_shows(files: Files, look: Callable[..., int], name: str) -> None:
    left = {other: content for other, content in files.items() if other != name}
    assert look(left) == 1


def test_what_is_no_bundle_is_2(files: Files, look: Callable[..., int], place: Path) -> None:
    assert look({name: content for name, content in files.items() if name != "manifest.json"}) == 2
    (place / "no.zip").write_bytes(b"not a zip file")
    assert main([str(place / "no.zip")]) == 2
    assert main([str(place / "nowhere.zip")]) == 2
    assert look(files, "--key-file", str(place / "nowhere.key")) == 2


@pytest.fixture(scope="module")
def judged(place: Path) -> Callable[..., int]:
    """Return what verifies the bytes of a zip file, in this process, and returns the exit status."""

    def run(content: bytes, *arguments: str) -> int:
        (place / "judged.zip").write_bytes(content)
        return main([str(place / "judged.zip"), *arguments])

    return run


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_zip_file_with_more_or_less_in_it_shows(bundle: bytes, files: Files, judged: Callable[..., int]) -> None:
    items = [*files.items()]
    assert judged(packed(items)) == judged(packed(reversed(items))) == 0
    assert judged(packed([*items, ("note.txt", b"believe me")])) == 1
    assert judged(packed([*items, ("x/", b"")])) == judged(packed([*items, ("./records.jsonl", b"evil")])) == 2
    assert judged(packed([*items, ("Records.jsonl", b"evil")])) == 1
    assert judged(packed([("records.jsonl", b""), *[item for item in items if item[0] != "records.jsonl"]])) == 1
    for name, content in (("manifest.json", b"{}"), ("seal.txt", b"evil"), ("records.jsonl", files["records.jsonl"])):
        assert judged(packed([(name, content), *items])) == judged(packed([*items, (name, content)])) == 2
    for cut in (0, 3, 10, len(bundle) // 2, len(bundle) - 1):
        assert judged(bundle[:cut]) == 2
    damaged = bytearray(bundle)
    damaged[bundle.index(b"records.jsonl") + 200] ^= 1  # in what is compressed
    assert judged(bytes(damaged)) == 1


def test_bytes_that_belong_to_no_file_of_the_bundle_show(
    bundle: bytes, files: Files, judged: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged(bundle) == 0
    central, name = bundle.index(b"PK\1\2"), len("README.txt")
    with_comment, hidden, before_directory = io.BytesIO(bundle), io.BytesIO(), io.BytesIO(bundle)
    with zipfile.ZipFile(with_comment, "a") as archive:
        archive.comment = b"believe me"
    with zipfile.ZipFile(hidden, "w") as archive:
        archive.writestr("records.jsonl", b"evil")
        archive.filelist.clear()
        archive.NameToInfo.clear()
        for other, content in files.items():
            archive.writestr(other, content)
    with zipfile.ZipFile(before_directory, "a") as archive:
        archive.writestr("note.txt", b"believe me")
        archive.filelist.pop()
    in_header = bytearray(packed(files.items()))
    in_header[4] += 1
    for changed in (
        *(with_comment.getvalue(), hidden.getvalue(), before_directory.getvalue(), bytes(in_header)),
        *(b"#!/bin/sh\n" + bundle, bundle + b"behind", bundle[:central] + b"between" + bundle[central:]),
        _set(bundle, central + 8, 1),  # flags: encrypted
        _set(bundle, 6, 1),
        _set(bundle, 7, 8),  # flags: the name is UTF-8
        _set(bundle, 30, 0xFF),  # the name is not
        _set(bundle, central + 9, 8),
        _set(bundle, central + 46, 0xFF),
        _set(bundle, central + 10, 12),  # packed in another way
        _set(bundle, central + 41, 0xA1),  # a symbolic link
        _set(bundle, central + 32, 1),  # a comment of its own
        _set(bundle, len(bundle) - 12, 1),  # the count of files
        _set(bundle, 30 + name, 2),  # an extra field of another kind
        b"PK\5\6" + bytes(18),
    ):
        assert judged(changed) == 2
        assert "error: " in capsys.readouterr().err


def _set(content: bytes, at: int, byte: int) -> bytes:
    assert content[at] != byte
    return content[:at] + bytes([byte]) + content[at + 1 :]


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_a_byte_flipped_or_put_in_anywhere_in_the_zip_file_shows(
    data: st.DataObject, bundle: bytes, judged: Callable[..., int]
) -> None:
    at = data.draw(st.integers(0, len(bundle)))
    assert judged(bundle[:at] + data.draw(st.binary(min_size=1, max_size=9)) + bundle[at:]) in {1, 2}
    flipped = _flipped(bundle, data)
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        ends = {entry.header_offset + 49 + len(entry.filename) + entry.compress_size for entry in archive.infolist()}
    # Of the last byte that is compressed some bits may mean nothing: RFC 1951, section 3.2.3.
    if next(at for at, byte in enumerate(bundle) if flipped[at] != byte) not in ends:
        assert judged(flipped) in {1, 2}


class Padding:
    """A compressor that adds something behind the end of what it compressed."""

    def __init__(self, padding: bytes) -> None:
        self._inner = zlib.compressobj(9, zlib.DEFLATED, -15)
        self._padding = padding

    def compress(self, data: bytes) -> bytes:
        return self._inner.compress(data)

    def flush(self) -> bytes:
        return self._inner.flush() + self._padding


def test_what_older_pythons_write_is_the_same_but_for_where_sizes_stand(
    bundle: bytes, judged: Callable[..., int]
) -> None:
    """Up to 3.11.3 they stand in the header too, which says later that they stand behind it."""
    older = bytearray(bundle)
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        for entry in archive.infolist():
            sizes = struct.pack("<2L", entry.compress_size, entry.file_size)
            older[entry.header_offset + 18 : entry.header_offset + 26] = sizes
            assert older[entry.header_offset + 4] == 45
    assert judged(bytes(older)) == 0
    older[18] ^= 1
    assert judged(bytes(older)) == 2


@pytest.mark.parametrize("name", ["README.txt", "records.jsonl", "manifest.json", "seal.txt"])
def test_bytes_hidden_behind_what_is_compressed_show(
    files: Files, judged: Callable[..., int], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A reader that has found the end of a file looks no further; what is behind it passes for a part of the file."""
    changed = refit(files)
    for padding, status in ((b"", 0), (b"believe me", 1), (b"\0" * (3 << 20), 1)):
        compressors = iter([Padding(padding if other == name else b"") for other in changed])

        def next_compressor(*_: object, compressors: Iterator[Padding] = compressors) -> Padding:
            return next(compressors)

        monkeypatch.setattr(zipfile, "_get_compressor", next_compressor)
        assert judged(packed(changed.items())) == status


@pytest.mark.parametrize("size", [-1, 0, 1, True, None, "1", 10**30])
def test_a_size_that_is_not_the_file_s_shows(files: Files, look: Callable[..., int], size: object) -> None:
    manifest = json.loads(refit(files)["manifest.json"])
    actual = manifest["sizes"]["README.txt"]
    for told in (size, actual + size) if type(size) is int else (size,):
        manifest["sizes"]["README.txt"] = told
        content = canonical(manifest).encode()
        seal = b"sha256 %s\nhmac-sha256 -\n" % hashlib.sha256(content + b"-").hexdigest().encode()
        assert look({**files, "manifest.json": content, "seal.txt": seal}) == (told != actual)


def test_a_zip_file_of_more_than_two_gigabytes_is_read_as_it_is_written(
    monkeypatch: pytest.MonkeyPatch, judged: Callable[..., int]
) -> None:
    """The bounds beyond which numbers are written in another place are moved to where a test can cross them."""
    for bound in (200, 3_000):
        monkeypatch.setattr(zipfile, "ZIP64_LIMIT", bound)
        large = made(filled())
        monkeypatch.setattr("theodolite.stores.bundle.verify.LARGE", bound)
        assert b"PK\6\6" in large
        assert judged(large) == 0
        assert judged(_set(large, large.index(b"PK\6\6") + 12, 46)) == 2
        monkeypatch.undo()
        assert judged(large) == 2


def test_what_is_read_is_bounded_by_the_manifest(files: Files, place: Path, judged: Callable[..., int]) -> None:
    large = b"0" * (64 << 20)
    for name in ("records.jsonl", "heads.jsonl", "registry.json", "README.txt", "manifest.json", "seal.txt"):
        content = packed({**files, name: large}.items())
        tracemalloc.start()
        try:
            assert judged(content) == 1
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 32 << 20, name
    assert (place / "judged.zip").stat().st_size < 100_000


@pytest.mark.parametrize("line", [b"1" * 3_000_000, b"[" * 1_000_000, b'{"session":"' + b"x" * 20_000_000])
def test_a_long_line_costs_time_in_proportion(files: Files, judged: Callable[..., int], line: bytes) -> None:
    content = packed(
        refit({**files, "records.jsonl": line + b"\n", "heads.jsonl": line, "registry.json": line}).items()
    )
    start = time.perf_counter()
    assert judged(content) == 1
    assert time.perf_counter() - start < 5


@pytest.mark.skipif(os.name != "posix", reason="the system has no such files")
def test_what_is_no_regular_file_is_not_waited_for(files: Files, place: Path) -> None:
    folder = place / "piped"
    folder.mkdir()
    for name, content in files.items():
        if name != "records.jsonl":
            (folder / name).write_bytes(content)
    os.mkfifo(folder / "records.jsonl")
    assert main([str(folder)]) == 1
    assert main([str(folder / "records.jsonl")]) == 2


def test_names_in_a_bundle_command_no_terminal(
    files: Files, look: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert look(refit({**files, "heads.jsonl": b""})) == 1
    assert r"session 'odd \"\\\x1b\u2028\x7f'".replace(r"\"", '"') in capsys.readouterr().out
    assert look({**files, "manifest.json": files["manifest.json"].replace(b"verify.py", b"\x1b[2J.py")}) == 1
    assert "\x1b" not in capsys.readouterr().out


@given(
    st.text() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53) | st.lists(st.text())
)
def test_what_is_hashed_is_written_alike_by_both(value: object) -> None:
    written = msgspec.json.encode([value])
    again = parsed(written)
    assert again is not None
    assert canonical(again).encode() == written


def test_of_some_sessions_only_their_records_are_in_it(place: Path) -> None:
    stream = io.BytesIO()
    write_bundle(filled(), stream, about={}, key=KEY, sessions=["s-1"])
    (place / "one.zip").write_bytes(stream.getvalue())
    files = unpacked(stream.getvalue())
    assert {json.loads(line)["session"] for line in files["records.jsonl"].splitlines()} == {"s-1"}
    assert json.loads(files["manifest.json"])["sessions"] == ["s-1"]
    assert main([str(place / "one.zip"), "--key-file", str(place / "operator.key")]) == 0
    named = {**files, "manifest.json": files["manifest.json"].replace(b'["s-1"]', b'["s-1","s-2"]')}
    (place / "named.zip").write_bytes(packed(refit(named).items()))
    assert main([str(place / "named.zip")]) == 1


def test_of_a_store_that_was_tampered_with_the_bundle_shows_it(
    file: Path, change: Callable[..., None], place: Path
) -> None:
    with SQLiteStore(file, key=KEY) as store:
        for record in filled().read(session="s-1"):
            store.append(Entry(session="s", at=1.0, kind=Kind.EVENT, payload=record.payload or Raw(b"")))
    change(file, "UPDATE records SET payload = x'7b7d' WHERE n = 1", "DELETE FROM records WHERE n = 2")
    with SQLiteStore(file, key=KEY) as store, store.still() as still, (place / "t.zip").open("wb") as stream:
        found = write_bundle(still, stream, about={}, key=KEY)
    assert not found.intact
    assert main([str(place / "t.zip")]) == 1


def test_a_store_that_is_written_to_meanwhile_is_bundled_as_it_was(file: Path, place: Path, entry: Entries) -> None:
    with SQLiteStore(file, key=KEY) as store:
        for n in range(3):
            store.append(entry(f"s-{n}"))
        with store.still() as still, (place / "live.zip").open("wb") as stream:
            assert len(list(still.read())) == 3
            store.append(entry("s-0"), durable=True)
            store.append(entry("s-9"), durable=True)
            assert write_bundle(still, stream, about={}, key=KEY).intact
    assert main([str(place / "live.zip"), "--key-file", str(place / "operator.key")]) == 0
    assert json.loads(unpacked((place / "live.zip").read_bytes())["manifest.json"])["records"] == 3


def test_sealed_payloads_stay_sealed_and_say_who_spoke_where_the_key_is_given(place: Path) -> None:
    sealer, inner = Sealer(KEY), MemoryStore(KEY)
    store = SealedStore(inner, sealer)
    for record in filled().read(session="s-1"):
        store.append(Entry(session="s", at=1.0, kind=Kind.DECISION, payload=record.payload or Raw(b"")))
    stream = io.BytesIO()
    write_bundle(store, stream, about={}, key=KEY, opened=sealer.opened)
    files = unpacked(stream.getvalue())
    assert b"quiet" not in files["records.jsonl"]
    assert json.loads(files["manifest.json"])["detectors"] == {"margin": ["1"]}
    (place / "sealed.zip").write_bytes(stream.getvalue())
    assert main([str(place / "sealed.zip")]) == 0
    stream = io.BytesIO()
    write_bundle(store, stream, about={}, key=KEY, opened=Sealer(b"another").opened)
    assert json.loads(unpacked(stream.getvalue())["manifest.json"])["detectors"] == {}


sessions = st.sampled_from(["s-1", "\u202e", "s\x00", "\U0001f9ed"]) | st.text(max_size=5)
entries = st.builds(
    Entry,
    session=sessions,
    at=st.floats(allow_nan=False, allow_infinity=False),
    kind=st.sampled_from([Kind.DECISION, Kind.EVENT, Kind.COVERAGE]),
    payload=(st.binary(max_size=30) | st.just(b"{}")).map(Raw),
    codes=st.lists(st.text(max_size=4), max_size=3).map(tuple),
)


@given(st.lists(st.tuples(entries, st.booleans(), st.text(max_size=5)), max_size=12))
@settings(max_examples=40, deadline=None)
def test_whatever_a_store_holds_both_find_it_intact(
    look: Callable[..., int], place: Path, steps: list[tuple[Entry, bool, str]]
) -> None:
    store = MemoryStore(KEY)
    for entry, erases, reason in steps:
        store.append(entry)
        if erases:
            store.erase(entry.session, reason=reason)
    assert verify(store, KEY).intact
    assert look(unpacked(made(store)), "--key-file", str(place / "operator.key")) == 0
