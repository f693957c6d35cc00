"""`theodolite probe PATH...`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from theodolite.cli.choices import Form
from theodolite.cli.exits import answering
from theodolite.cli.options import ConfigFile, Format, Model, Output, ReaderName, Store, System

if TYPE_CHECKING:
    from theodolite.cli.probing import Request

__all__ = ("EXAMPLES", "probe")

EXAMPLES = """Examples:

theodolite demo --save demo

theodolite probe demo/clean.json --model local --estimate

theodolite probe demo/clean.json --model local --probes 1

theodolite probe session.json --model openai:gpt-5.1 --system prompt.txt --probes 14

theodolite probe --gate --model openai:gpt-5.1 --system prompt.txt --into bank.calibration.json
"""

_Paths = Annotated[
    list[Path] | None,
    typer.Argument(metavar="PATH", help="Recordings, as of `scan`; with --gate none.", show_default=False),
]
_Session = Annotated[str | None, typer.Option("--session", metavar="ID", help="Probe this session only.")]
_Probes = Annotated[
    int | None,
    typer.Option(
        "--probes",
        min=1,
        max=64,
        metavar="N",
        help="Put N probes to each session. Drift of decisions alone takes 12 or more to alarm.",
        show_default="6, one of each type",
    ),
]
_Estimate = Annotated[
    bool,
    typer.Option("--estimate", metavar="", help="Ask nobody; say how many calls and tokens it would take."),
]
_Localize = Annotated[
    bool,
    typer.Option(
        "--localize",
        metavar="",
        help="Search one session for the message that carries its drift, and probe it without that.",
    ),
]
_Gate = Annotated[
    bool,
    typer.Option(
        "--gate", metavar="", help="Find out whether the model can be measured under the policy of --system at all."
    ),
]
_Into = Annotated[
    Path | None,
    typer.Option(
        "--into", metavar="FILE", help="For --gate, keep the result in this calibration artefact, made if absent."
    ),
]
_References = Annotated[
    str | None,
    typer.Option(
        "--references",
        metavar="LENGTHS",
        help="For --gate, ask behind benign contexts too, of brief, short, medium, long, with commas; or none.",
        show_default="short",
    ),
]
_Date = Annotated[
    str | None,
    typer.Option(
        "--date", metavar="DAY", help="For --gate, the day that it is dated, as 2026-11-30.", show_default="today"
    ),
]


def probe(  # noqa: PLR0913, PLR0917 - every option is an argument: that is how typer reads a command
    paths: _Paths = None,
    model: Model = None,
    system: System = None,
    session: _Session = None,
    probes: _Probes = None,
    estimate: _Estimate = False,
    localize: _Localize = False,
    gate: _Gate = False,
    into: _Into = None,
    references: _References = None,
    date: _Date = None,
    form: Format = Form.TEXT,
    output: Output = None,
    store: Store = None,
    config: ConfigFile = None,
    reader: ReaderName = None,
) -> None:
    """Put questions under pressure to copies of recorded sessions, and compare the answers with clean ones.

    Four may be asked: a copy of the session, a shadow that knows its shape alone, a benign conversation of like length,
    and, where it is close, an instance without context. The session itself is not touched. What the copy is asked holds
    the session's last messages unredacted, so it goes to whoever runs that model. A model that is not the agent's own
    says nothing about the agent. The last line of the report is the verdict.

    Exit status: 0 nothing was found in any session, 1 a copy told the planted reference and nobody else did, or the
    probes of a session together alarm, 2 the command or the configuration is wrong, 3 nothing follows for a session: a
    probe failed, answers say neither yes nor no, a model is not the agent's own or failed its gate, a part could not be
    read, or there was nothing to probe. 1 goes before 3. A single difference is not a finding.

    Exit status with --localize 0 no message carries drift, 1 one does, 3 that could not be decided, or not by a model
    that is not the agent's; with --gate 0 the model can be measured, 3 it cannot, or that could not be decided. The
    search asks no twin: a message that makes the copy more willing, whatever it is asked, is named too.
    """
    with answering():
        from theodolite.cli.probing import PROBES, Request, probe_recordings  # noqa: PLC0415 - costs more than --help

        request = Request(
            paths=tuple(paths or ()),
            model=model,
            system=system,
            session=session,
            probes=PROBES if probes is None else probes,
            estimate=estimate,
            form=form,
            output=output,
            store=store,
            config=config,
            reader=reader,
        )
        if gate:
            _refuse("with --gate", recording=paths, session=session, probes=probes, localize=localize)
            raise typer.Exit(_measured(request, into, references, date))
        _refuse("without --gate", into=into, references=references, date=date)
        if localize:
            from theodolite.cli.localizing import localize_session  # noqa: PLC0415 - as said

            raise typer.Exit(localize_session(request))
        raise typer.Exit(probe_recordings(request))


def _measured(request: Request, into: Path | None, references: str | None, date: str | None) -> int:
    from theodolite.cli.gating import LENGTHS, gate_model  # noqa: PLC0415 - as said

    _refuse("with --gate", store=request.store, reader=request.reader)
    day = datetime.now(UTC).date().isoformat() if date is None else date
    return gate_model(request, into=into, references=LENGTHS if references is None else references, day=day)


def _refuse(where: str, **options: object) -> None:
    """Raise ConfigError for options that mean nothing there: who gives one has something else in mind."""
    from theodolite.core.errors import ConfigError  # noqa: PLC0415 - as said

    for name, value in options.items():
        if value:
            what = "a recording" if name == "recording" else f"--{name}"
            raise ConfigError(f"{what} has no meaning {where}: leave it out")
