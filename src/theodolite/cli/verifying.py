"""A store, verified and told of in words, and its heads, to be kept elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from theodolite.cli.newfile import new_file
from theodolite.config.wiring import store_key
from theodolite.core.errors import ConfigError, StoreError
from theodolite.core.store import Head, Problem, Verification, verify
from theodolite.reports.escaping import inert
from theodolite.reports.layout import Block, Heading, Paragraph, Span, counted, plain
from theodolite.stores.sqlite import ReadOnlySQLiteStore

__all__ = ("verified", "write_heads")

# Problems that are listed. Who finds more has one cause for them all.
LISTED = 100
NAME = 100


def verified(file: Path, key_file: Path | None, heads: Path | None) -> tuple[str, bool]:
    """Return what is to be said of a store, and whether it is intact.

    Raises ConfigError for a key or kept heads that cannot be read, and StoreError for a file that is not a store.
    """
    key = store_key(file, key_file)
    kept = _read_heads(heads) if heads is not None else []
    with ReadOnlySQLiteStore(file) as evidence:
        try:
            result = verify(evidence, key, kept)
        except StoreError as error:
            return f"damaged: {inert(str(error))}\n", False
    return "".join(plain(_told(file, result))), result.intact


def write_heads(file: Path, output: Path | None) -> None:
    """Write the heads of a store as JSON lines, to a new file or to standard output.

    Raises StoreError for a file that is not a store, and ConfigError for an output that is there or cannot be written.
    """
    with ReadOnlySQLiteStore(file) as evidence:
        lines = msgspec.json.Encoder().encode_lines(evidence.heads())
    if output is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(lines)
        sys.stdout.buffer.flush()
        return
    # Heads that were kept before may be the only ones that show what was put back: they are not written over.
    with new_file(output) as stream:
        stream.write(lines)


def _read_heads(path: Path) -> list[Head]:
    decoder = msgspec.json.Decoder(Head)
    kept: list[Head] = []
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    kept.append(decoder.decode(line))
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    raise ConfigError(
                        f"{path}, line {number} is not a head: {error}; `theodolite store heads` writes them"
                    ) from error
    except OSError as error:
        raise ConfigError(f"the heads in {path} cannot be read: {error.strerror}; check the path") from error
    return kept


def _told(file: Path, result: Verification) -> Iterator[Block]:
    state = "intact" if result.intact else f"{counted(len(result.problems), 'problem')}"
    counts = f"{counted(result.sessions, 'session')}, {counted(result.records, 'record')}"
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
