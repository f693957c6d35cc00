"""`theodolite doctor`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from theodolite.cli.choices import ShortForm, alternatives, one_of
from theodolite.cli.exits import NOTHING, USAGE, answering

__all__ = ("doctor",)


def doctor(
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="Settings; ./theodolite.toml by default, if it is there."),
    ] = None,
    form: Annotated[
        ShortForm,
        typer.Option(
            "--format",
            "-f",
            parser=one_of(ShortForm),
            metavar=alternatives(ShortForm),
            help="text for people, json for programs.",
        ),
    ] = ShortForm.TEXT,
) -> None:
    """Say whether this installation works: versions, settings, plug-ins, readers, detectors, store, terminal.

    Exit status: 0 all is well, 2 the configuration is broken.
    """
    with answering():
        from theodolite.cli.health import examine, told  # noqa: PLC0415 - costs more than --help does

        health = examine(config)
        if form is ShortForm.JSON:
            from theodolite.reports.json import encoded  # noqa: PLC0415 - as above

            sys.stdout.write(encoded(health).decode() + "\n")
        else:
            sys.stdout.write(told(health))
        raise typer.Exit(NOTHING if health.well else USAGE)
