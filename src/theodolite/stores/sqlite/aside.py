"""Work that no signal handler may break into: done in a thread of its own, for Python runs them in the main one.

SQLAlchemy, a Condition, an Event and a Queue are written in Python. What is raised in the middle of one may leave a
lock taken, a transaction open, or become another exception.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from theodolite.core.errors import StoreError

__all__ = ("aside", "taken")

Answer = TypeVar("Answer")


def taken() -> threading.Lock:
    """Return a lock that is taken: a gate for whoever waits until somebody else gives it back."""
    gate = threading.Lock()
    gate.acquire()
    return gate


def aside(work: Callable[[], Answer], *, within: float) -> Answer:
    """Return what some work returns, in a thread of its own. Whoever is interrupted leaves it to itself.

    Raises the StoreError of the work, and one when it takes more than `within` seconds. Costs some 0.1 ms.
    """
    gate = taken()
    answers: list[Answer] = []
    faults: list[StoreError] = []

    def run() -> None:
        try:
            answers.append(work())
        except StoreError as fault:
            faults.append(fault)
        finally:
            gate.release()

    try:
        threading.Thread(target=run, name="theodolite-store-aside", daemon=True).start()
    except RuntimeError:  # the interpreter is ending, or the system has no more threads
        return work()
    if not gate.acquire(timeout=within):
        raise StoreError(f"the disk has not answered for {within:g} s: look for a fault of the disk")
    for fault in faults:
        raise fault
    for answer in answers:
        return answer
    raise StoreError("what was to be read could not be, for a fault of theodolite: report what stands above")
