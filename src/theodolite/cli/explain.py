"""`theodolite explain CODE`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from theodolite.cli.exits import answering

__all__ = ("explain",)


def explain(
    code: Annotated[
        str | None,
        typer.Argument(help="A code or a kind of evidence, as reports print it. Without one, all codes are listed."),
    ] = None,
) -> None:
    """Explain a code: what it means, why it matters, an example, what to do."""
    with answering():
        from theodolite.cli.explaining import explained, listed  # noqa: PLC0415 - costs more than --help does

        sys.stdout.write(listed() if code is None else explained(code, terminal=sys.stdout.isatty()))
