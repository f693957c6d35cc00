"""`theodolite calibrate DATASET...`, `verify`, `show` and `diff`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from theodolite.cli.choices import Form, ShortForm, alternatives, one_of
from theodolite.cli.exits import answering
from theodolite.cli.looks import Look
from theodolite.cli.options import ALONE, ConfigFile, JobsOption, Model, Output, ReaderName, ShortFormat, System

if TYPE_CHECKING:
    from typer._click.core import Context

__all__ = ("EXAMPLES", "calibrate", "diff", "fit", "show", "verify")

EXAMPLES = """Examples:

theodolite calibrate sessions/ --known-good --out calibration.json

theodolite calibrate sessions/ --labels labels.jsonl --alpha 0.01 --jobs 4

theodolite calibrate show calibration.json

theodolite scan recordings/ --calibration calibration.json
"""

_HELP = ("--help", "-h")


class _Group(TyperGroup):
    """A group whose verb may be left out: what is no verb is a dataset."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Put the verb in where it was left out."""
        if args and args[0] not in self.commands and args[0] not in _HELP:
            args = ["fit", *args]
        return super().parse_args(ctx, args)


calibrate = typer.Typer(cls=_Group, no_args_is_help=True, epilog=EXAMPLES)

_Dataset = Annotated[
    list[Path],
    typer.Argument(
        metavar="DATASET",
        help="Recordings in any form that `scan` reads. A folder stands for the `.json`, `.jsonl` and `.eval` "
        "files below it, and their `.gz`.",
    ),
]
_Artefact = Annotated[Path, typer.Argument(metavar="CALIBRATION", help="A calibration artefact.")]
_Alpha = Annotated[
    float,
    typer.Option(
        "--alpha",
        metavar="SHARE",
        help="The share of clean sessions that may alarm, at any time. It takes 2 / SHARE - 1 of them and more, and a "
        "fifth again to confirm it.",
    ),
]
_Out = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="FILE",
        help="The artefact. One that is there is replaced, and its gates are kept. Interrupted, the same command goes "
        "on from `.FILE.partial.jsonl` beside it.",
    ),
]
_Labels = Annotated[
    list[Path] | None,
    typer.Option(
        "--labels",
        metavar="FILE",
        help="What is known of the sessions, as `theodolite dataset label` writes it; it goes before labels that stand "
        "in a recording. May be given more than once.",
        show_default="those in the recordings",
    ),
]
_Marks = Annotated[
    Path | None,
    typer.Option(
        "--suppressions",
        metavar="FILE",
        help="Suppressions of a scan: a session without a label counts as clean where `false_alarm = true` is said of "
        "each of its findings.",
    ),
]
_KnownGood = Annotated[
    bool, typer.Option("--known-good", metavar="", help="Take every session without a label to be clean.")
]
_Probes = Annotated[
    int,
    typer.Option("--probes", min=1, max=100, metavar="N", help="With --model, how many probes each session is put."),
]
_Date = Annotated[
    str | None,
    typer.Option(
        "--date",
        metavar="DAY",
        help="The day that it is dated, as 2026-11-30: the rest depends on no clock.",
        show_default="today",
    ),
]
_Name = Annotated[
    str, typer.Option("--name", metavar="NAME", help="What the dataset is called.", show_default="its files")
]
_Edition = Annotated[
    str, typer.Option("--dataset-version", metavar="VERSION", help="Which version of it.", show_default="none")
]
_Agent = Annotated[
    str,
    typer.Option(
        "--agent",
        metavar="NAME",
        help="Whose sessions they are that name no agent: what live ones are opened with.",
        show_default="nobody's",
    ),
]
_AgentModel = Annotated[
    str,
    typer.Option(
        "--agent-model",
        metavar="NAME",
        help="Which model the agent used in sessions that name none.",
        show_default="none",
    ),
]
_Reference = Annotated[
    bool,
    typer.Option("--reference", metavar="", help="Make an artefact that is REFERENCE: for the agents of others."),
]
_Anew = Annotated[
    bool, typer.Option("--anew", metavar="", help="Forget what an interrupted run has done, and begin again.")
]


@calibrate.callback()
def _calibrate() -> None:
    """Fit thresholds to your own sessions, so that a stated share of clean ones alarms and no more.

    `theodolite calibrate DATASET...` is short for `theodolite calibrate fit DATASET...`.
    """


@calibrate.command(epilog=EXAMPLES)
def fit(  # noqa: PLR0913, PLR0917 - every option is an argument: that is how typer reads a command
    dataset: _Dataset,
    alpha: _Alpha = 0.01,
    out: _Out = Path("calibration.json"),
    labels: _Labels = None,
    known_good: _KnownGood = False,
    suppressions: _Marks = None,
    jobs: JobsOption = ALONE,
    model: Model = None,
    system: System = None,
    probes: _Probes = 20,
    name: _Name = "",
    edition: _Edition = "",
    agent: _Agent = "",
    agent_model: _AgentModel = "",
    date: _Date = None,
    reference: _Reference = False,
    anew: _Anew = False,
    config: ConfigFile = None,
    reader: ReaderName = None,
    form: ShortFormat = ShortForm.TEXT,
    output: Output = None,
) -> None:
    """Replay labeled sessions as live ones are, and fit thresholds and coefficients to what was said of them.

    Clean sessions suffice: of each code the threshold lies above the highest scores of all but a share alpha of them.
    Drifted ones tell what is found, and what a second opinion is worth; thirty of them and more are used to fit
    coefficients. With --model each session is put probes when it is over.

    Exit status: 0 the artefact is CALIBRATED, 2 the command or the configuration is wrong, 3 it is REFERENCE, since the
    sessions do not support more: its warnings say why.
    """
    with answering():
        from theodolite.cli.calibrating import Request, calibrate_sessions  # noqa: PLC0415 - costs more than --help does

        day = datetime.now(UTC).date().isoformat() if date is None else date
        request = Request(
            paths=tuple(dataset),
            alpha=alpha,
            out=out,
            labels=tuple(labels or ()),
            known_good=known_good,
            jobs=jobs,
            model=model,
            system=system,
            probes=probes,
            name=name,
            edition=edition,
            agent=agent,
            agent_model=agent_model,
            day=day,
            reference=reference,
            anew=anew,
            suppressions=suppressions,
            config=config,
            reader=reader,
            form=Form(form),
            output=output,
        )
        raise typer.Exit(calibrate_sessions(request))


@calibrate.command(epilog="Example: theodolite calibrate verify calibration.json newer-sessions/ --known-good")
def verify(  # noqa: PLR0913, PLR0917 - as above
    calibration: _Artefact,
    dataset: _Dataset,
    labels: _Labels = None,
    known_good: _KnownGood = False,
    jobs: JobsOption = ALONE,
    config: ConfigFile = None,
    reader: ReaderName = None,
    form: ShortFormat = ShortForm.TEXT,
    output: Output = None,
) -> None:
    """Count how often an artefact alarms on sessions that it was not fitted to, and hold that against its alpha.

    Exit status: 0 no rate is refuted, 1 one is: more clean sessions alarm than chance makes of alpha, 2 the command or
    the configuration is wrong, 3 there are too few clean sessions to say so of any code that acts.
    """
    with answering():
        from theodolite.cli.calibrating import Replayed  # noqa: PLC0415 - as above
        from theodolite.cli.verifying_rates import verify_rates  # noqa: PLC0415 - as above

        request = Replayed(
            calibration=calibration,
            paths=tuple(dataset),
            labels=tuple(labels or ()),
            known_good=known_good,
            jobs=jobs,
            config=config,
            reader=reader,
            form=Form(form),
            output=output,
        )
        raise typer.Exit(verify_rates(request, calibration))


@calibrate.command(epilog="Example: theodolite calibrate show calibration.json --format html --output calibration.html")
def show(
    calibration: _Artefact,
    form: Annotated[
        Look,
        typer.Option(
            "--format",
            "-f",
            parser=one_of(Look),
            metavar=alternatives(Look),
            help="text and html for people, json for programs, png for its pictures.",
        ),
    ] = Look.TEXT,
    output: Output = None,
) -> None:
    """Tell what an artefact rests on: thresholds, rates with intervals, slices, and what it does not support."""
    with answering():
        from theodolite.cli.calibration_showing import show as shown  # noqa: PLC0415 - as above

        raise typer.Exit(shown(calibration, form, output))


@calibrate.command(epilog="Example: theodolite calibrate diff old.json calibration.json")
def diff(
    before: Annotated[Path, typer.Argument(metavar="A", help="The artefact that was.")],
    after: Annotated[Path, typer.Argument(metavar="B", help="The artefact that is to be.")],
    form: ShortFormat = ShortForm.TEXT,
    output: Output = None,
) -> None:
    """Tell how two artefacts differ, and which of their codes alarm earlier or later.

    Exit status: 0 they say the same, 1 they differ, 2 one of them is no artefact.
    """
    with answering():
        from theodolite.cli.calibration_showing import differ  # noqa: PLC0415 - as above

        raise typer.Exit(differ(before, after, form, output))
