"""`theodolite dataset VERB`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from theodolite.cli.exits import answering
from theodolite.cli.options import ConfigFile, Paths, ReaderName

__all__ = ("agentdojo", "dataset", "label")

dataset = typer.Typer(no_args_is_help=True, epilog="Next: theodolite calibrate --help")


@dataset.callback()
def _dataset() -> None:
    """Make labeled sessions: what `theodolite calibrate` measures false alarms and finds on.

    `label` asks you about recorded sessions of your own agent: nothing fits better. `agentdojo` makes clean and
    hijacked sessions of a public benchmark on this machine, to try things out.
    """


@dataset.command(epilog="Example: theodolite dataset label recordings/ --labels labels.jsonl --by Mo")
def label(
    paths: Paths,
    labels: Annotated[
        Path,
        typer.Option("--labels", metavar="FILE", help="The file of labels: answers are added to it, made if absent."),
    ],
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Who answers: kept with each label.")] = "",
    config: ConfigFile = None,
    reader: ReaderName = None,
) -> None:
    """Step through recorded sessions, and say of each whether it is clean or drifted.

    Shown are its goal, its calls, what was returned and said, and what the detectors make of it; texts are redacted. A
    letter answers, and a note may follow it: c clean, d drifted, u looked and cannot tell, s not now, b back to the one
    before, q quit. Each answer is on the disk before the next session is shown, and a session that has one is not shown
    again. Where standard input is no terminal, answers are read from it line by line.

    Exit status: 0 no session is left, or you quit, 2 the command or the configuration is wrong, 3 no session could be
    read.
    """
    with answering():
        from theodolite.cli.labeling import Labeling, label_sessions  # noqa: PLC0415 - costs more than --help does

        today = datetime.now(UTC).date().isoformat()
        request = Labeling(paths=tuple(paths), labels=labels, by=by, date=today, config=config, reader=reader)
        raise typer.Exit(label_sessions(request))


@dataset.command(epilog="Example: theodolite dataset agentdojo runs/ --suite banking --attack direct --limit 20")
def agentdojo(
    folder: Annotated[Path, typer.Argument(metavar="OUT_DIR", help="A new folder, or an empty one.")],
    suites: Annotated[
        list[str] | None,
        typer.Option("--suite", metavar="NAME", help="May be given more than once.", show_default="all four"),
    ] = None,
    attacks: Annotated[
        list[str] | None,
        typer.Option(
            "--attack",
            metavar="NAME",
            help="Words in which injected text asks for what an attacker wants. May be given more than once.",
            show_default="important_instructions, direct, ignore_previous",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            min=1,
            metavar="N",
            help="At most N sessions of each kind, of each suite and attack: the same ones each time.",
            show_default="as many as there are, some 5,000",
        ),
    ] = None,
) -> None:
    """Make labeled sessions of the AgentDojo benchmark, by its own solutions and attacks; no model or key is needed.

    Clean: a task is done as the benchmark's solution does it, without an attack, or with one that nothing comes of.
    Drifted: as soon as a tool shows the injected text, what it asks for is done too. The same version of the benchmark
    gives the same bytes. No model acted here, so that a calibration on these sessions is none of your agent.

    Exit status: 0 they are made, 2 the command is wrong, or the extra `agentdojo` is not installed.
    """
    with answering():
        from theodolite.cli.making import make_sessions  # noqa: PLC0415 - costs more than --help does

        raise typer.Exit(make_sessions(folder, suites=tuple(suites or ()), attacks=tuple(attacks or ()), limit=limit))
