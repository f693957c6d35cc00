"""`theodolite store VERB`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from theodolite.cli.exits import answering

__all__ = ("heads", "store", "verify")

store = typer.Typer(no_args_is_help=True, help="Look after what was kept.")


@store.callback()
def _store() -> None:
    """Look after what was kept."""


@store.command(epilog="Example: theodolite store verify evidence.db --key-file evidence.key")
def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The SQLite file of a store.")],
    key_file: Annotated[
        Path | None,
        typer.Option("--key-file", metavar="FILE", help="The key that sealed the store's heads, if there is one."),
    ] = None,
    kept: Annotated[
        Path | None,
        typer.Option(
            "--heads",
            metavar="HEADS",
            help="Heads kept elsewhere, as `theodolite store heads` wrote them: each must still lie on its chain.",
        ),
    ] = None,
) -> None:
    """Look for records that were changed, removed, reordered, added or erased, and say what could not be shown.

    Reads FILE and never writes to it; a read-only copy will do.

    Exit status: 0 nothing is wrong, 1 something is, 2 FILE is not a store, or the key or HEADS cannot be read.
    """
    with answering():
        from theodolite.cli.verifying import verified  # noqa: PLC0415 - SQLAlchemy costs more than --help does

        text, intact = verified(file, key_file, kept)
        sys.stdout.write(text)
        raise typer.Exit(0 if intact else 1)


@store.command(epilog="Example: theodolite store heads evidence.db --output heads.jsonl")
def heads(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The SQLite file of a store.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="A new file to write to, instead of standard output."),
    ] = None,
) -> None:
    """Write the head of every session as JSON lines, to be kept where whoever writes FILE cannot.

    They hold names of sessions and hashes, no text. `theodolite store verify --heads` finds with them that older copies
    were put back. Verify FILE before: they say what it holds now, right or wrong.

    Exit status: 0 they are written, 2 FILE is not a store, or the output is there already or cannot be written.
    """
    with answering():
        from theodolite.cli.verifying import write_heads  # noqa: PLC0415 - SQLAlchemy costs more than --help does

        write_heads(file, output)
