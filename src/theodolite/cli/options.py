"""The options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from theodolite.cli.choices import Form, Jobs, ShortForm, alternatives, jobs_of, one_of

__all__ = (
    "ALONE",
    "ConfigFile",
    "Format",
    "JobsOption",
    "Model",
    "Output",
    "Paths",
    "ReaderName",
    "ShortFormat",
    "Store",
    "System",
)

Paths = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH",
        help="Recordings, plain or gzipped. A folder stands for the `.json`, `.jsonl` and `.eval` files below it, and "
        "their `.gz`.",
    ),
]
Format = Annotated[
    Form,
    typer.Option(
        "--format",
        "-f",
        parser=one_of(Form),
        metavar=alternatives(Form),
        help="text and html for people, json for one document, jsonl for one session a line as they come, junit for "
        "test views, sarif for code scanning, png for a picture.",
    ),
]
ShortFormat = Annotated[
    ShortForm,
    typer.Option(
        "--format",
        "-f",
        parser=one_of(ShortForm),
        metavar=alternatives(ShortForm),
        help="text for people, json for programs.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write the report to FILE, replacing what is there."),
]
ALONE = Jobs()
JobsOption = Annotated[
    Jobs,
    typer.Option(
        "--jobs",
        "-j",
        parser=jobs_of,
        metavar="N",
        show_default="1",
        help="Work with N processes, or by a Dask scheduler: dask://HOST:PORT. What comes of it is the same.",
    ),
]
Store = Annotated[
    Path | None,
    typer.Option(
        "--store", metavar="FILE", help="Keep every decision, redacted, in the SQLite store FILE, made if absent."
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="Settings; ./theodolite.toml by default, if it is there."),
]
ReaderName = Annotated[
    str | None,
    typer.Option(
        "--reader", metavar="NAME", help="Read every recording in this form. `theodolite doctor` lists the forms."
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="Who answers: `local` (the embedded model), `local:FILE.gguf`, KIND:MODEL as `openai:gpt-5.1`, or a name "
        "of [models] in the settings.",
        show_default="the subject of [panel]",
    ),
]
System = Annotated[
    Path | None,
    typer.Option(
        "--system",
        metavar="FILE",
        help="The agent's system prompt, to the character: everybody who is asked a probe gets it.",
    ),
]
