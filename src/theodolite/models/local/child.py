"""The process of the native model from outside: started, waited for, and ended."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import weakref
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import msgspec

from theodolite.core.errors import ModelError
from theodolite.core.reading import Cause
from theodolite.models.local.line import LOOK, Line
from theodolite.models.local.process import Order, Standing

__all__ = ("Child", "shown")

# The interpreter of the new process finds what this one finds, whichever way it came to it.
_START = "import sys; sys.path[:] = {path!r}; from theodolite.models.local.process import serve; serve()"
# Seconds until it must stand. Our choice: loading is reading, and that long reads 12 GB from a disk of 200 MB/s.
PATIENCE = 60.0
# Seconds for a process that has let go of its socket or pipe to be gone as well.
_GRACE = 1.0
# SIGILL, by its number: Windows has no such name.
_ILLEGAL = 4
# A message of the runtime may quote what it was asked: enough to see what is wrong, no more.
_QUOTED = 300
# Threads that wait in OpenMP spin by default: on a busy machine that cost up to nine tenths of the speed.
_CALM = {"OMP_WAIT_POLICY": "passive"}
# What it is shown of the environment: what finds folders, libraries and processors. Keys are no affair of native code.
_SHOWN = re.compile(
    r"HOME|LANG|LC_\w+|PATH|SYSTEMROOT|TEMP|TMP|TMPDIR|USERPROFILE|PYTHONHOME|__PYVENV_LAUNCHER__"
    r"|(?:DY)?LD_(?:FALLBACK_)?LIBRARY_PATH|(?:GOMP|KMP|OMP)_\w+|CUDA_VISIBLE_DEVICES",
    re.IGNORECASE,  # as Windows has them
)


class Child:
    """A process that serves a model. It ends by `close`, with this object, or with the interpreter.

    Raises OSError when no process can be started.
    """

    def __init__(self, weights: Path, *, key: str, slots: int, threads: int, context: int) -> None:
        folder = TemporaryDirectory(prefix="theodolite-", ignore_cleanup_errors=True)
        order = Order(
            weights=str(weights),
            folder=folder.name,
            key=key,
            slots=slots,
            threads=threads,
            context=context,
            patience=PATIENCE,
        )
        self._weights = weights
        try:
            self._process = _spawned(shown(os.environ))
        except OSError:
            folder.cleanup()
            raise
        self.close = weakref.finalize(self, _end, self._process, folder)
        self._patience, self._deadline = PATIENCE, time.monotonic() + PATIENCE
        self._given_up = False
        self._said: Future[bytes] = Future()
        # A pipe cannot be waited for with a deadline on every system: a thread does, and ends with the process.
        Thread(target=_spoken_to, args=(self._process, order, self._said), name="model", daemon=True).start()

    @property
    def ended(self) -> bool:
        """Whether it is gone."""
        return self._process.poll() is not None

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    def address(self, line: Line) -> str:
        """Return where it listens, as soon as it does; any number of threads may wait.

        Raises ModelError when it cannot load its weights, or not in time; HungUpError when the line is hung up before.
        """
        said = self._first_line(line)
        if self._given_up:
            raise ModelError(
                f"the embedded model did not stand within {self._patience:g} s, and was given up: are its weights on a "
                "slow disk, or does xllamacpp hang? `python -c 'import xllamacpp'` shows the latter",
                cause=Cause.TIMEOUT,
            )
        if not said.endswith(b"\n"):
            raise ModelError(f"the embedded model could not be started: its process {self.how_it_ended()}")
        standing = msgspec.json.decode(said, type=Standing)
        if standing.fault:
            raise ModelError(
                f"xllamacpp cannot load {self._weights} ({standing.fault[:_QUOTED]}): the file is broken or no model "
                "that it knows, or there is not enough memory for it"
            )
        return standing.address

    def _first_line(self, line: Line) -> bytes:
        """Return what the process says first; nothing where it ends before, or is given up."""
        while (left := self._deadline - time.monotonic()) > 0.0 or self._said.done():
            with suppress(TimeoutError):
                return self._said.result(timeout=min(LOOK, max(0.0, left)))
            line.check()
        self._given_up = True
        self.close()
        return b""

    def how_it_ended(self) -> str:
        """Return what became of it, for a message."""
        with suppress(subprocess.TimeoutExpired):
            code = self._process.wait(timeout=_GRACE)
            if code == -_ILLEGAL:
                return "met an instruction that this processor does not have: the wheels of xllamacpp need AVX2"
            return f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
        return "does not answer"


def shown(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what the process is shown of an environment.

    >>> shown({"OPENAI_API_KEY": "sk-1", "LANG": "C"})
    {'OMP_WAIT_POLICY': 'passive', 'LANG': 'C'}
    """
    return {**_CALM, **{name: value for name, value in environ.items() if _SHOWN.fullmatch(name)}}


def _spawned(environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own interpreter, our own module
        [sys.executable, "-c", _START.format(path=sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environ,
    )


def _spoken_to(process: subprocess.Popen[bytes], order: Order, said: Future[bytes]) -> None:
    """Give a process its order, and tell what it says first: nothing where it ends before."""
    ordered, told = process.stdin, process.stdout
    first = b""
    # It may have ended before it read or said anything, or be closed meanwhile: its exit status says why.
    with suppress(OSError, ValueError):
        if ordered is not None and told is not None:  # they are what Popen was asked for
            ordered.write(msgspec.json.encode(order) + b"\n")
            ordered.flush()
            first = told.readline()
    said.set_result(first)


def _end(process: subprocess.Popen[bytes], folder: TemporaryDirectory[str]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    folder.cleanup()
