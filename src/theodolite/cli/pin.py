"""`theodolite pin VERB`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from theodolite.cli.choices import alternatives, one_of
from theodolite.cli.exits import answering
from theodolite.cli.grades import Graded, Told
from theodolite.cli.guard import Form
from theodolite.cli.options import Output

__all__ = ("add", "pin", "remove", "verify")

pin = typer.Typer(no_args_is_help=True, epilog="Start with: theodolite pin add FILE, when you have looked at it")

_FILE = Path("theodolite-pins.json")
_Pins = Annotated[Path, typer.Option("--pins", metavar="PINS", help="The file of pins that `pin add` wrote.")]


@pin.callback()
def _pin() -> None:
    """Keep contracts as they were agreed to, and see when they change.

    A pin has the hash of name, descriptions, schemas and annotations of a tool or operation, and enough of the contract
    to say what changed; a tool without a schema has one, too. Keep the file under version control: whoever can write it
    can agree to anything.
    """


@pin.command(epilog="Example: theodolite pin add tools.json --to theodolite-pins.json")
def add(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="Specifications or tool lists. What was pinned of one before is replaced."),
    ],
    to: Annotated[Path, typer.Option("--to", metavar="PINS", help="The file of pins, made if absent.")] = _FILE,
) -> None:
    """Pin all contracts in the files as they are now.

    Look at them before: pinning is agreeing. A file is known by its path from the folder of PINS, so that it is found
    from any other folder.

    Exit status: 0 they are pinned, 2 a file cannot be read or is no contract, or PINS is something else or was changed.
    """
    with answering():
        from theodolite.cli.pinning import added  # noqa: PLC0415 - costs more than --help does

        raise typer.Exit(added(tuple(dict.fromkeys(files)), to))


@pin.command(epilog="Example: theodolite pin remove tools.json")
def remove(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Files that are pinned, whether they are still there or not.")
    ],
    pins: _Pins = _FILE,
) -> None:
    """Take the pins of the files away: they are no longer verified.

    Exit status: 0 they are gone, 2 PINS cannot be read or written, or a file is not pinned: then nothing is removed.
    """
    with answering():
        from theodolite.cli.pinning import removed  # noqa: PLC0415 - costs more than --help does

        raise typer.Exit(removed(tuple(dict.fromkeys(files)), pins))


@pin.command(epilog="Example: theodolite pin verify --pins theodolite-pins.json --format sarif")
def verify(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="Verify these alone; without any, all files that are pinned."),
    ] = None,
    pins: _Pins = _FILE,
    form: Form = Told.TEXT,
    fail_on: Annotated[
        Graded,
        typer.Option(
            "--fail-on",
            parser=one_of(Graded),
            metavar=alternatives(Graded),
            help="Exit with 1 for changes from this grade on. A change of words may be all that an attack needs.",
        ),
    ] = Graded.TEXT_ONLY,
    output: Output = None,
) -> None:
    """Say what changed since the contracts were pinned: what came, what went, what asks more, what reads otherwise.

    Where a file cannot be read, what changed in the others is said all the same.

    Exit status: 0 nothing counts, 1 something does, 2 PINS or a file cannot be read, or it is not pinned, 3 nothing is
    pinned.
    """
    with answering():
        from theodolite.cli.pinning import verified  # noqa: PLC0415 - costs more than --help does

        raise typer.Exit(verified(tuple(dict.fromkeys(files or ())), pins, form, fail_on, output))
