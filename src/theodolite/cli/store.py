"""`theodolite store VERB`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from theodolite.cli.exits import answering

__all__ = ("store", "verify")

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
) -> None:
    """Look for records that were changed, removed, reordered or added, and say what could not be shown.

    Exit status: 0 nothing is wrong, 1 something is, 2 FILE is not a store or the key cannot be read.
    """
    with answering():
        from theodolite.cli.verifying import verified  # noqa: PLC0415 - SQLAlchemy costs more than --help does

        text, intact = verified(file, key_file)
        sys.stdout.write(text)
        raise typer.Exit(0 if intact else 1)
