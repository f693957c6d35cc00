"""`theodolite probe PATH...`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from theodolite.cli.choices import Form
from theodolite.cli.exits import answering

__all__ = ("EXAMPLES", "probe")

EXAMPLES = """Examples:

theodolite probe session.json --model openai:gpt-5.1 --estimate

theodolite probe session.json --model local --system prompt.txt
"""

_Paths = Annotated[list[Path], typer.Argument(metavar="PATH", help="Recordings, as `theodolite scan` takes them.")]
_Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="Who answers: a name of [models] in the settings, `local` (the embedded model), `local:FILE.gguf`, or "
        "KIND:MODEL, as `openai:gpt-5.1`. By default the subject of [panel].",
    ),
]
_System = Annotated[
    Path | None,
    typer.Option(
        "--system", metavar="FILE", help="The agent's system prompt; a recording holds no more than its hash."
    ),
]
_Session = Annotated[
    str | None, typer.Option("--session", metavar="ID", help="Probe this session only, of those in the recordings.")
]
_Estimate = Annotated[
    bool, typer.Option("--estimate", metavar="", help="Ask nobody; say how many calls and tokens it would take.")
]
_Form = Annotated[Form, typer.Option("--format", "-f", help="As for `theodolite scan`.")]
_Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write the report to FILE, replacing what is there."),
]
_Store = Annotated[
    Path | None,
    typer.Option("--store", metavar="FILE", help="Keep every decision, redacted, in the SQLite store FILE."),
]
_Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="Settings; ./theodolite.toml by default, if it is there."),
]
_Reader = Annotated[str | None, typer.Option("--reader", metavar="NAME", help="Read every recording in this form.")]


def probe(  # noqa: PLR0913, PLR0917 - every option is an argument: that is how typer reads a command
    paths: _Paths,
    model: _Model = None,
    system: _System = None,
    session: _Session = None,
    estimate: _Estimate = False,
    form: _Form = Form.TEXT,
    output: _Output = None,
    store: _Store = None,
    config: _Config = None,
    reader: _Reader = None,
) -> None:
    """Ask a model the same question twice: as it is in the session, and clean; show how the two answers differ.

    The session itself is not touched. What the model is asked holds the session's last messages unredacted, so it goes
    to whoever runs that model. A model that is not the agent's own says nothing about the agent.

    Exit status: 0 every session was answered for, 2 the command or the configuration is wrong, 3 a probe failed, or
    there was nothing to probe. A difference is not a finding.
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
