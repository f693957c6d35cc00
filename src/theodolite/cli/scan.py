"""`theodolite scan PATH...`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from theodolite.cli.choices import Form, Reached, one_of
from theodolite.cli.exits import answering
from theodolite.cli.options import ALONE, ConfigFile, Format, JobsOption, Output, Paths, ReaderName, Store, System

__all__ = ("EXAMPLES", "scan")

EXAMPLES = """Examples:

theodolite scan session.jsonl

theodolite scan recordings/ --format jsonl --jobs 4 > sessions.jsonl

theodolite scan recordings/ --store evidence.db --fail-on elevated_review

theodolite scan recordings/ --baseline known.json

theodolite scan session.jsonl --calls

theodolite scan recordings/ --calibration calibration.json --compare none
"""


_Calibration = Annotated[
    Path | None,
    typer.Option(
        "--calibration",
        metavar="FILE",
        help="Grade by this artefact instead of the detectors' own thresholds; "
        "`shipped` is one that comes with the package.",
    ),
]
_Compare = Annotated[
    str | None,
    typer.Option(
        "--compare",
        metavar="OLD",
        help="Judge twice, by --calibration and by the artefact OLD, or `none`, and tell only what "
        "would change: which calls would be stopped or let through, which sessions come to something else.",
    ),
]
_Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="Put one probe to each session when it is over, and let this model answer: named as for `probe`.",
        show_default="the subject of [panel]",
    ),
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
        parser=one_of(Reached),
        metavar="ACTION",
        help="Exit with 1 only where a session's action reaches ACTION (elevated_review or restricted_mode), instead "
        "of for any finding.",
    ),
]
_Calls = Annotated[
    bool,
    typer.Option(
        "--calls",
        metavar="",
        help="Tell of every call the goal, where each argument came from, the score and why; also of sessions in which "
        "nothing was found. For text: the other forms have it anyway.",
    ),
]


def scan(  # noqa: PLR0913, PLR0917 - every option is an argument: that is how typer reads a command
    paths: Paths,
    form: Format = Form.TEXT,
    output: Output = None,
    jobs: JobsOption = ALONE,
    store: Store = None,
    calibration: _Calibration = None,
    compare: _Compare = None,
    config: ConfigFile = None,
    reader: ReaderName = None,
    model: _Model = None,
    system: System = None,
    no_probes: _NoProbes = False,
    baseline: _Baseline = None,
    write_baseline: _WriteBaseline = None,
    suppressions: _Suppressions = None,
    fail_on: _FailOn = None,
    calls: _Calls = False,
) -> None:
    """Judge recorded sessions, and report what was found, why, and what could not be judged.

    Where a model is named, here or in the settings, each session is put one probe when it is over: enough for a planted
    reference that is told, and by itself for no other finding. `theodolite probe` puts more.

    Exit status: 0 nothing new was found, 1 there is a new finding, 2 the command or the configuration is wrong, 3 a
    session has not enough evidence or failed, or a part could not be read. 2 goes before 1, and 1 before 3. The form of
    the report changes nothing about it. With --fail-on, findings below ACTION are reported and do not count. With
    --compare it is 0 where nothing would change, and 1 where something would.
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
            calls=calls,
        )
        if compare is not None:
            from theodolite.cli.comparing import compare_recordings  # noqa: PLC0415 - as above

            raise typer.Exit(compare_recordings(request, compare))
        raise typer.Exit(scan_recordings(request))
