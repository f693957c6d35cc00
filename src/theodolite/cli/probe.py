"""`theodolite probe PATH...`."""

from __future__ import annotations

from typing import Annotated

import typer

from theodolite.cli.choices import Form
from theodolite.cli.exits import answering
from theodolite.cli.options import ConfigFile, Format, Model, Output, Paths, ReaderName, Store, System

__all__ = ("EXAMPLES", "probe")

EXAMPLES = """Examples:

theodolite probe session.json --model openai:gpt-5.1 --estimate

theodolite probe session.json --model local --system prompt.txt
"""

_Session = Annotated[
    str | None, typer.Option("--session", metavar="ID", help="Probe this session only, of those in the recordings.")
]
_Estimate = Annotated[
    bool,
    typer.Option(
        "--estimate", metavar="", help="Ask nobody, keep nothing; say how many calls and tokens it would take."
    ),
]


def probe(  # noqa: PLR0913, PLR0917 - every option is an argument: that is how typer reads a command
    paths: Paths,
    model: Model = None,
    system: System = None,
    session: _Session = None,
    estimate: _Estimate = False,
    form: Format = Form.TEXT,
    output: Output = None,
    store: Store = None,
    config: ConfigFile = None,
    reader: ReaderName = None,
) -> None:
    """Ask a model the same question twice: as it is in the session, and clean; show how the two answers differ.

    The session itself is not touched. What the model is asked holds the session's last messages unredacted, so it goes
    to whoever runs that model. A model that is not the agent's own says nothing about the agent.

    Exit status: 0 every session was answered for, 1 a copy told the planted reference and its shadow did not, 2 the
    command or the configuration is wrong, 3 a probe failed, a part could not be read, or there was nothing to probe. 1
    goes before 3. Another difference is not a finding, nor is one in the answers of a model that is not the agent's.
    """
    with answering():
        from theodolite.cli.probing import Request, probe_recordings  # noqa: PLC0415 - costs more than --help does

        request = Request(
            paths=tuple(paths),
            model=model,
            system=system,
            session=session,
            estimate=estimate,
            form=form,
            output=output,
            store=store,
            config=config,
            reader=reader,
        )
        raise typer.Exit(probe_recordings(request))
