"""`theodolite VERB`."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from theodolite.cli.calibrate import calibrate
from theodolite.cli.dataset import dataset
from theodolite.cli.demo import demo
from theodolite.cli.doctor import doctor
from theodolite.cli.exits import Boundary
from theodolite.cli.explain import explain
from theodolite.cli.guard import guard
from theodolite.cli.models import models
from theodolite.cli.pin import pin
from theodolite.cli.probe import EXAMPLES as PROBES
from theodolite.cli.probe import probe
from theodolite.cli.report import report
from theodolite.cli.scan import EXAMPLES, scan
from theodolite.cli.store import store

__all__ = ("app", "main", "run")

app = typer.Typer(
    name="theodolite",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,  # they print local variables, and those hold what sessions said
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: theodolite scan RECORDING",
)
app.command()(demo)
app.command(epilog=EXAMPLES)(scan)
app.command(epilog=PROBES)(probe)
app.command(epilog="Example: theodolite report scan.json --output report.html")(report)
app.command(epilog="Example: theodolite explain margin.untrusted")(explain)
app.command()(doctor)
app.add_typer(calibrate, name="calibrate")
app.add_typer(guard, name="guard")
app.add_typer(pin, name="pin")
app.add_typer(models, name="models")
app.add_typer(store, name="store")
app.add_typer(dataset, name="dataset")


def _version(wanted: bool) -> None:  # noqa: FBT001 - the form that typer calls it in
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - half the cost of --help, which does not need it

        typer.echo(f"theodolite {version('theodolite')}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", metavar="", callback=_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Find the tool calls of an LLM agent that injected text explains better than the goal of its user.

    Exit status: 0 nothing was found, 1 there is a finding, 2 the command or the configuration is wrong, 3 something
    could not be judged (not enough evidence, a failure, an unreadable part).
    """
    del version


def run() -> None:
    """Run the command line: the console entry point."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who started this program
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open as long as the program
    # Who retries says so in the report, and a store that fails is an error of its own; the libraries' lines would stand
    # across a progress bar, and a Ctrl-C while a connection closes would print a traceback.
    for name in ("stamina", "sqlalchemy"):
        logging.getLogger(name).addHandler(logging.NullHandler())
    with Boundary():
        app()
