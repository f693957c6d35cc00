"""A store, verified and told of in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from theodolite.config.wiring import read_key
from theodolite.core.errors import StoreError
from theodolite.core.store import Problem, Verification, verify
from theodolite.reports.escaping import inert
from theodolite.reports.layout import Block, Heading, Paragraph, Span, plain
from theodolite.stores.sqlite import SQLiteStore

__all__ = ("verified",)

# Problems that are listed. Who finds more has one cause for them all.
LISTED = 100
NAME = 100


def verified(file: Path, key_file: Path | None) -> tuple[str, bool]:
    """Return what is to be said of a store, and whether it is intact.

    Raises ConfigError for a key that cannot be read, and StoreError for a file that is not a store.
    """
    key = read_key(key_file) if key_file is not None else None
    if file.is_file() and not file.stat().st_size:  # SQLite would make a new store of it
        raise StoreError(f"{file} is empty, and no store: was it copied while it was being made?")
    with SQLiteStore(file, key=key, create=False) as store:
        try:
            result = verify(store, key)
        except StoreError as error:
            return f"damaged: {inert(str(error))}\n", False
    return "".join(plain(_told(file, result))), result.intact


def _told(file: Path, result: Verification) -> Iterator[Block]:
    state = "intact" if result.intact else f"{_count(len(result.problems), 'problem')}"
    counts = f"{_count(result.sessions, 'session')}, {_count(result.records, 'record')}"
    erased = f", the payloads of {result.erased:,} of them erased" if result.erased else ""
    yield Heading((Span(f"{inert(str(file))}: {state}"),))
    yield Paragraph((Span(f"{counts}{erased}"),))
    if result.problems:
        yield Heading((Span("Problems"),))
    for problem in result.problems[:LISTED]:
        yield Paragraph((Span(_problem(problem)),))
    if len(result.problems) > LISTED:
        yield Paragraph((Span(f"... and {len(result.problems) - LISTED:,} more"),))
    yield Heading((Span("What this could not have shown"),))
    for unshown in result.unshown:
        yield Paragraph((Span(unshown),))


def _problem(problem: Problem) -> str:
    where = f"session {inert(problem.session, NAME)}" if problem.session else "the whole store"
    record = "" if problem.n is None else f", record {problem.n}"
    return f"{where}{record}: {problem.what}"


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
