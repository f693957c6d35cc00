"""The process in which the native model runs: xllamacpp's server, until standard input ends.

A process of its own, for four reasons. The runtime holds Python's lock while it loads weights, half a second for the
smallest, and would stop every event loop of the host for so long. A fault in native code, or a processor without the
instructions that it was built for, ends this process and not the host. What waits in OpenMP can be told to sleep, which
takes an environment variable. And closing it gives back all memory.
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import shutil
import signal
import socket
import sys
from pathlib import Path
from threading import Thread
from typing import NoReturn, Protocol

import msgspec
from msgspec import Struct

__all__ = ("Order", "Standing", "serve")

# Addresses of UNIX sockets hold 108 bytes on Linux and 104 on macOS, the end mark included (unix(7), unix(4)).
_LONGEST_ADDRESS = 100
# Our choice: a second's work at most between two looks at whether a caller has left, at 250 tokens/s.
_BATCH = 256
# llama.cpp: no message at all, not even of errors.
_SILENT = -1


class Order(Struct, frozen=True, kw_only=True):
    """What is to be served: the weights, where, and to whom. `folder` is one that nobody else may enter.

    `patience` is how many seconds loading may take.
    """

    weights: str
    folder: str
    key: str
    slots: int
    threads: int
    context: int
    patience: float


class Standing(Struct, frozen=True, kw_only=True):
    """Where the server listens, or why there is none."""

    address: str = ""
    fault: str = ""


class _Threads(Protocol):
    n_threads: int


class _Model(Protocol):
    path: str


class _Params(Protocol):
    """The settings of xllamacpp.CommonParams that are used here."""

    model: _Model
    cpuparams: _Threads
    cpuparams_batch: _Threads
    n_ctx: int
    n_parallel: int
    n_batch: int
    n_ubatch: int
    cache_ram_mib: int
    verbosity: int
    warmup: bool
    ui: bool
    endpoint_slots: bool
    offline: bool
    hostnames: list[str]
    api_keys: list[str]


class _Server(Protocol):
    listening_address: str


def serve() -> None:
    """Serve what the first line of standard input orders, say where on standard output, and end when the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the host, which ends this process when it ends
    told = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a runtime prints is not for the host
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    # From here on the host may leave at any time, and loading may hang for ever; holding Python's lock, it hangs what
    # watches for the host as well, but not this, which ends the process by itself.
    faulthandler.dump_traceback_later(order.patience, exit=True)
    host = Thread(target=_outlive, args=(order.folder,), name="host", daemon=True)
    host.start()
    server: _Server | None = None
    try:
        server = _started(order)
        standing = Standing(address=server.listening_address)
    except (RuntimeError, ImportError, AttributeError, TypeError, ValueError, OSError) as error:
        standing = Standing(fault=f"{type(error).__name__}: {error}")
    faulthandler.cancel_dump_traceback_later()
    os.write(told, msgspec.json.encode(standing) + b"\n")
    if server is None:
        _leave(order.folder)
    host.join()


def _outlive(folder: str) -> None:
    """End this process when standard input ends."""
    while os.read(sys.stdin.fileno(), 1):  # under no lock of Python's, which an end of its own would have to wait for
        pass
    _leave(folder)


def _leave(folder: str) -> NoReturn:
    shutil.rmtree(folder, ignore_errors=True)  # a host that was killed could not
    os._exit(0)  # whoever ordered is gone: nothing is left to be wound up


def _started(order: Order) -> _Server:
    runtime = importlib.import_module("xllamacpp")
    params: _Params = runtime.CommonParams()
    params.model.path = order.weights
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = order.threads
    params.n_parallel = order.slots
    params.n_ctx = order.context * order.slots  # it is shared out among the slots
    params.n_batch = params.n_ubatch = _BATCH
    params.cache_ram_mib = 0  # else up to 8 GiB of what was asked before
    params.verbosity = _SILENT
    params.warmup = params.ui = params.endpoint_slots = False
    params.offline = True
    params.hostnames = [_host(order.folder)]
    params.api_keys = [order.key]
    server: _Server = runtime.Server(params)
    return server


def _host(folder: str) -> str:
    """Return where to listen: a socket in the folder, or loopback where a system or a long path allows none."""
    path = str(Path(folder) / "model.sock")
    return path if hasattr(socket, "AF_UNIX") and len(os.fsencode(path)) <= _LONGEST_ADDRESS else "127.0.0.1"
