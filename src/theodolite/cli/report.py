"""`theodolite report FILE...`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from theodolite.cli.choices import Retold, alternatives, one_of
from theodolite.cli.exits import answering

__all__ = ("report",)

_Files = Annotated[
    list[Path],
    typer.Argument(metavar="FILE", help="Reports that `theodolite scan` wrote with --format json or jsonl."),
]
_Form = Annotated[
    Retold,
    typer.Option(
        "--format",
        "-f",
        parser=one_of(Retold),
        metavar=alternatives(Retold),
        help="html for people, junit for test views, sarif for code scanning, png for a picture of the timelines.",
    ),
]
_Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write the report to FILE, replacing what is there."),
]


def report(files: _Files, form: _Form = Retold.HTML, output: _Output = None) -> None:
    """Write reports that were kept as JSON in another form, without judging anything again.

    Several become one. Exit status: 0 it is written, 2 a file is no such report.
    """
    with answering():
        from theodolite.cli.retelling import retell  # noqa: PLC0415 - costs more than --help does

        retell(files, form, output)
