"""Who works: this process, several on this machine, or a Dask cluster that is there already."""

from __future__ import annotations

import ipaddress
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import connection
from typing import ParamSpec, Protocol, TypeVar

from msgspec import Struct

from theodolite.cli.choices import Jobs
from theodolite.cli.exits import say
from theodolite.config.plugins import PluginWarning
from theodolite.core.errors import ConfigError, MissingExtraError, TheodoliteError

__all__ = ("Pool", "pooled")

_P = ParamSpec("_P")
_T = TypeVar("_T")

# Pieces of work that wait for each worker, so that none is idle while this process reads.
AHEAD = 2
# Seconds in which a cluster that is there answers. Our choice.
_PATIENCE = 5.0
# Seconds between looks at whether anybody works, and looks after which nobody will. Our choice: workers may restart.
_LOOK, _LOOKS = 5.0, 6
# Seconds in which a signal that was sent to all of them surely came. Our choice.
_MOMENT = 0.5
# What a terminal or a service manager stops a command with.
_HELD = (signal.SIGINT, signal.SIGTERM)


class _Client(Protocol):
    """What is used of a client of a Dask cluster."""

    def nthreads(self) -> Mapping[str, int]: ...

    def get_executor(self, *, pure: bool) -> Executor: ...

    def close(self) -> object: ...


class Pool(Struct, frozen=True):
    """An executor, and how many pieces of work may be on their way to it; `alive` says whether anybody works there."""

    executor: Executor
    ahead: int
    alive: Callable[[], bool]

    def submit(self, work: Callable[_P, _T], *given: _P.args, **named: _P.kwargs) -> Future[_T]:
        """Hand a piece of work in; signals are held back meanwhile, since it may start a worker."""
        with _sheltered():
            return self.executor.submit(work, *given, **named)

    def done(self, waiting: set[Future[_T]]) -> set[Future[_T]]:
        """Wait for some of the work; return what is done. Raises TheodoliteError where nobody works any more."""
        idle = 0
        while True:
            done = wait(waiting, _LOOK, return_when=FIRST_COMPLETED).done
            if done:
                return done
            idle = 0 if self.alive() else idle + 1
            if idle >= _LOOKS:
                raise TheodoliteError("the workers are gone: start them again, and give the same command")


@contextmanager
def pooled(jobs: Jobs) -> Generator[Pool]:
    """Give the pool. Raises TheodoliteError when a worker dies, or when no cluster answers at that address.

    Work is a function of an installed module and bytes: a Dask worker must have the same version of this package, and
    sees sessions as they are, so that one on another machine is told of.
    """
    try:
        with _dask(jobs.scheduler) if jobs.scheduler else _processes(jobs.processes) as pool:
            yield pool
    except BrokenExecutor as error:
        # Who ends a whole group of processes ends this one too, a moment later: that is then what happened.
        time.sleep(_MOMENT)
        raise TheodoliteError(
            "a worker process died: it was killed, or there was not enough memory. Give fewer --jobs"
        ) from error


@contextmanager
def _processes(count: int) -> Generator[Pool]:
    pool = ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"), initializer=_begin)
    try:
        yield Pool(pool, count * AHEAD, lambda: True)
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _dask(scheduler: str) -> Generator[Pool]:
    try:
        # Typed in part: what is used of it is said below.
        distributed = import_module("distributed")
    except ImportError as error:
        raise MissingExtraError(extra="dask", needed_for="workers of a Dask cluster") from error
    if not _here(scheduler):
        say(f"warning: sessions go to the workers of {scheduler} as they are, not redacted, over its network")
    try:
        client: _Client = distributed.Client(f"tcp://{scheduler}", timeout=_PATIENCE, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ConfigError(
            f"--jobs dask://{scheduler}: no scheduler answers there within {_PATIENCE:g} s: start one with "
            "`dask scheduler --host 127.0.0.1`, and workers with `dask worker tcp://HOST:PORT`"
        ) from error
    try:
        workers = sum(client.nthreads().values())
        if not workers:
            raise ConfigError(f"--jobs dask://{scheduler}: the cluster has no workers: start `dask worker` first")
        yield Pool(client.get_executor(pure=False), workers * AHEAD, lambda: bool(client.nthreads()))
    except CancelledError as error:
        raise TheodoliteError(
            f"the cluster of dask://{scheduler} is gone: start it again, and give the same command"
        ) from error
    except distributed.KilledWorker as error:
        raise TheodoliteError(
            "a worker of the cluster died several times at the same work: it was killed, or there was not enough memory"
        ) from error
    finally:
        client.close()


def _here(scheduler: str) -> bool:
    host = scheduler.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def _sheltered() -> Generator[None, None, None]:
    """Hold signals back while a worker may be started: it inherits that, and is not stopped before it can say so.

    A mask alone holds them back from this thread, and any other thread of the process (a library's, in C) then takes
    them for it: so they are noted here, and raised again afterwards.
    """
    if not hasattr(signal, "pthread_sigmask") or threading.current_thread() is not threading.main_thread():
        yield
        return
    noted: list[int] = []
    handlers = {held: signal.signal(held, lambda number, _frame: noted.append(number)) for held in _HELD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for held, handler in handlers.items():
            signal.signal(held, handler)
        for number in noted:
            signal.raise_signal(number)


def _begin() -> None:
    """Leave Ctrl-C to the process that reads, and its warnings too; be ended by it, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    warnings.simplefilter("ignore", PluginWarning)
    threading.Thread(target=_end_with_parent, name="theodolite-parent", daemon=True).start()


def _end_with_parent() -> None:
    """End this process when the one that reads is gone: one that was killed could tell no worker to stop."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)  # work under way is for nobody, and what waits for more of it would wait forever
