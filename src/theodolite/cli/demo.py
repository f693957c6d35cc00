"""`theodolite demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from theodolite.cli.exits import answering

__all__ = ("demo",)


def demo(
    no_probes: Annotated[
        bool, typer.Option("--no-probes", metavar="", help="Ask no model: show what the sessions alone give away.")
    ] = False,
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="FOLDER", help="Write the two sessions into FOLDER, made if absent, and stop."),
    ] = None,
) -> None:
    """Scan two recorded sessions that come with the package, one clean and one hijacked, and explain what shows.

    Needs no key and no network. With the weights of the embedded model on this machine (`theodolite models pull`) both
    sessions are probed too, which takes a minute or two. Keeps nothing.

    Exit status: 0 both came out as they should, 1 they did not, 2 something is missing.
    """
    with answering():
        from theodolite.cli.demonstrating import save_sessions, show_demo  # noqa: PLC0415 - costs more than --help does

        raise typer.Exit(show_demo(probes=not no_probes) if save is None else save_sessions(save))
