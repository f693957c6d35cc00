"""`theodolite scan PATH...`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from theodolite.cli.choices import Form, Reached
from theodolite.cli.exits import answering

__all__ = ("EXAMPLES", "scan")

EXAMPLES = """Examples:

theodolite scan session.jsonl

theodolite scan recordings/ --format jsonl --jobs 4 > sessions.jsonl

theodolite scan recordings/ --store evidence.db --fail-on elevated_review

theodolite scan recordings/ --baseline known.json
"""


_Paths = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH",
        help="Recordings, plain or gzipped. A folder stands for the `.json` and `.jsonl` files below it, and their "
        "`.gz`.",
    ),
]
_Form = Annotated[
    Form,
    typer.Option(
        "--format",
        "-f",
        help="text and html for people, json for one document, jsonl for one session a line as they come, junit for "
        "test views, sarif for code scanning, png for a picture.",
    ),
]
_Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write the report to FILE, replacing what is there."),
]
_Jobs = Annotated[
    int,
    typer.Option(
        "--jobs", "-j", min=1, max=64, metavar="N", help="Judge with N processes. The report is the same for any N."
    ),
]
_Store = Annotated[
    Path | None,
    typer.Option(
        "--store", metavar="FILE", help="Keep every decision, redacted, in the SQLite store FILE, made if absent."
    ),
]
_Calibration = Annotated[
    Path | None,
    typer.Option("--calibration", metavar="FILE", help="Grade by this artefact instead of the shipped thresholds."),
]
_Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="Settings; ./theodolite.toml by default, if it is there."),
]
_Reader = Annotated[
    str | None,
    typer.Option(
        "--reader", metavar="NAME", help="Read every recording in this form. `theodolite doctor` lists the forms."
    ),
]
_Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="Probe each session when it is over, and let this model answer: a name of [models], `local`, or "
        "KIND:MODEL. `theodolite probe --estimate` says what that takes.",
    ),
]
_System = Annotated[
    Path | None, typer.Option("--system", metavar="FILE", help="The agent's system prompt, for the probes.")
]
_NoProbes = Annotated[
    bool, typer.Option("--no-probes", metavar="", help="Ask no model anything, also where the settings name one.")
]
_Baseline = Annotated[
    Path | None,
    typer.Option(
        "--baseline",
        metavar="FILE",
        help="Count only findings that FILE does not know: one of --write-baseline, or a report as json or jsonl.",
    ),
]
_WriteBaseline = Annotated[
    Path | None,
    typer.Option(
        "--write-baseline", metavar="FILE", help="Write the findings of this scan to FILE, to be known in the next one."
    ),
]
_Suppressions = Annotated[
    Path | None,
    typer.Option(
        "--suppressions",
        metavar="FILE",
        help="Findings that do not count, each with a reason and a last day; ./theodolite-suppressions.toml by "
        "default, if it is there.",
    ),
]
_FailOn = Annotated[
    Reached | None,
    typer.Option(
        "--fail-on",
        metavar="ACTION",
        help="Exit with 1 only where a session's action reaches ACTION (elevated_review or restricted_mode), instead "
        "of for any finding.",
    ),
]


def scan(  # noqa: PLR0913, PLR0917 - every option is an argument: that is how typer reads a command
    paths: _Paths,
    form: _Form = Form.TEXT,
    output: _Output = None,
    jobs: _Jobs = 1,
    store: _Store = None,
    calibration: _Calibration = None,
    config: _Config = None,
    reader: _Reader = None,
    model: _Model = None,
    system: _System = None,
    no_probes: _NoProbes = False,
    baseline: _Baseline = None,
    write_baseline: _WriteBaseline = None,
    suppressions: _Suppressions = None,
    fail_on: _FailOn = None,
) -> None:
    """Judge recorded sessions, and report what was found, why, and what could not be judged.

    Exit status: 0 nothing new was found, 1 there is a new finding, 2 the command or the configuration is wrong, 3 a
    session has not enough evidence or failed, or a part could not be read. 2 goes before 1, and 1 before 3. The form of
    the report changes nothing about it. With --fail-on, findings below ACTION are reported and do not count.
    """
    with answering():
        from theodolite.cli.scanning import Request, scan_recordings  # noqa: PLC0415 - costs more than --help does

        request = Request(
            paths=tuple(paths),
            form=form,
            output=output,
            jobs=jobs,
            store=store,
            calibration=calibration,
            config=config,
            reader=reader,
            model=model,
            system=system,
            probes=not no_probes,
            baseline=baseline,
            write_baseline=write_baseline,
            suppressions=suppressions,
            today=datetime.now(UTC).date(),
            fail_on=fail_on,
        )
        raise typer.Exit(scan_recordings(request))
