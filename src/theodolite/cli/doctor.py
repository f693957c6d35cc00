"""`theodolite doctor`."""

from __future__ import annotations

import sys

import typer

from theodolite.cli.choices import ShortForm
from theodolite.cli.exits import NOTHING, USAGE, answering
from theodolite.cli.options import ConfigFile, ShortFormat

__all__ = ("doctor",)


def doctor(config: ConfigFile = None, form: ShortFormat = ShortForm.TEXT) -> None:
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
