"""The user's own package client: pip or uv, whichever can fetch a package for this Python.

Which index is asked, and how, is in the user's settings for it.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

__all__ = ("PackageClient", "environment", "package_client", "reason")

# Seconds until an interpreter must have said whether it has pip. Our choice: it takes half of one.
_PATIENCE = 20.0
# How the variables end that the SDKs of providers look at for keys.
_KEYS = ("_API_KEY", "ANTHROPIC_AUTH_TOKEN")
# Where what is wrong begins in what a client says: advice and notices may come before and after it.
_BEGINS = re.compile(r"\s*(?:error|hash|\N{MULTIPLICATION SIGN})", re.IGNORECASE)
# Lines of what is wrong that are shown: with pip a wrong hash takes four.
_LINES = 4


class PackageClient(Struct, frozen=True):
    """A package client, by its name and the beginning of its commands."""

    name: str
    command: tuple[str, ...]

    def fetching(self, requirements: Path, folder: Path) -> list[str]:
        """Return the command that brings what a file asks for by hash, and nothing else, into a folder.

        No source package is taken, whose build would run code. pip brings wheels, uv what is in them.
        """
        if self.name == "pip":
            options = ["download", "--no-deps", "--only-binary=:all:", "--no-input", "--progress-bar=off"]
            where = ["--dest", str(folder)]
        else:
            options = ["pip", "install", "--no-deps", "--no-build", "--no-progress", "--python", sys.executable]
            where = ["--target", str(folder)]
        return [*self.command, *options, "--require-hashes", *where, "--requirement", str(requirements)]


def package_client() -> PackageClient | None:
    """Return the first client that is here, or None.

    pip of this environment; pip of the Python that the environment was made from, with its own interpreter, which only
    downloads and so touches no installation; uv, in this environment, on the PATH, or beside the interpreter.
    """
    return next(_clients(), None)


def _clients() -> Iterator[PackageClient]:
    if importlib.util.find_spec("pip") is not None:
        yield PackageClient("pip", _pip(sys.executable))
    base = _base()
    if base is not None and _runs(_pip(base)):
        yield PackageClient("pip", _pip(base))
    if importlib.util.find_spec("uv") is not None:
        yield PackageClient("uv", (sys.executable, "-P", "-m", "uv"))
    beside = str(Path(sys.executable).parent)
    for found in (shutil.which("uv"), shutil.which("uv", path=beside)):
        if found:
            yield PackageClient("uv", (found,))


def _pip(python: str) -> tuple[str, ...]:
    return (python, "-P", "-m", "pip")  # -P: none that lies in the working directory


def _base() -> str | None:
    """Return the interpreter that this environment was made from, if it is one."""
    if sys.prefix == sys.base_prefix:
        return None
    folder = Path(sys.base_prefix)
    names = (f"bin/python{sys.version_info.major}.{sys.version_info.minor}", "bin/python3", "python.exe")
    return next((str(folder / name) for name in names if (folder / name).is_file()), None)


def _runs(command: tuple[str, ...]) -> bool:
    try:
        done = subprocess.run(  # noqa: S603 - the interpreter that this one comes from
            [*command, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(os.environ),
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what a client is shown of an environment: everything but the keys of models' providers.

    pip of another Python is not told to stay in an environment: it installs nothing.

    >>> environment({"OPENAI_API_KEY": "sk-1", "PIP_INDEX_URL": "https://pypi.example"})
    {'PIP_INDEX_URL': 'https://pypi.example', 'PIP_REQUIRE_VIRTUALENV': '0'}
    """
    shown = {name: value for name, value in environ.items() if not name.upper().endswith(_KEYS)}
    return {**shown, "PIP_REQUIRE_VIRTUALENV": "0"}


def reason(lines: Iterable[str]) -> str:
    """Return the lines in which a client says what is wrong, as one.

    >>> reason(["Looking in links: wheels", "", "ERROR: No matching distribution found for tea==2.0"])
    'ERROR: No matching distribution found for tea==2.0'
    """
    said = [line.strip() for line in lines if line.strip()]
    first = next((place for place, line in enumerate(said) if _BEGINS.match(line)), max(0, len(said) - _LINES))
    return " ".join(said[first : first + _LINES])
