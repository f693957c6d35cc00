"""`theodolite guard VERB`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from theodolite.cli.choices import ShortForm, alternatives, one_of
from theodolite.cli.exits import answering
from theodolite.cli.grades import Graded, Heavy, Told
from theodolite.cli.options import Output, Paths, ReaderName, ShortFormat

__all__ = ("Form", "Spec", "check", "diff", "drift", "guard", "lint")

guard = typer.Typer(no_args_is_help=True, epilog="Start with: theodolite guard lint SPEC")


Spec = Annotated[
    Path,
    typer.Argument(
        metavar="SPEC",
        help="A file, JSON or YAML, or - for standard input: OpenAPI 3, Swagger 2, a list of tools (MCP, OpenAI, "
        "Anthropic) or a JSON Schema.",
    ),
]
Form = Annotated[
    Told,
    typer.Option(
        "--format",
        "-f",
        parser=one_of(Told),
        metavar=alternatives(Told),
        help="text for people, json for programs, sarif for code scanning, junit for test views.",
    ),
]
_FailOn = Annotated[
    Heavy,
    typer.Option(
        "--fail-on",
        parser=one_of(Heavy),
        metavar=alternatives(Heavy),
        help="Exit with 1 for findings from this weight on; lighter ones are shown.",
    ),
]


@guard.callback()
def _guard() -> None:
    """Check calls against the contracts of tools and APIs: OpenAPI, Swagger, MCP, function schemas, JSON Schema.

    Nothing is fetched: a specification that needs other files or addresses is refused, with the place.
    """


@guard.command(epilog="Example: theodolite guard lint openapi.json --fail-on warning")
def lint(
    spec: Spec,
    form: Form = Told.TEXT,
    fail_on: _FailOn = Heavy.ERROR,
    output: Output = None,
) -> None:
    """Say what of SPEC can be checked and what cannot, and what makes it hard for agents to use.

    An error is something that no check covers; a warning misleads agents; a note would help them.

    Exit status: 0 nothing counts, 1 something does, 2 SPEC cannot be read or is no contract, 3 it has no operation.
    """
    with answering():
        from theodolite.cli.guarding import linted  # noqa: PLC0415 - costs more than --help does

        raise typer.Exit(linted(spec, form, fail_on, output))


@guard.command(epilog="Example: theodolite guard check openapi.json createUser body.json")
def check(  # noqa: PLR0917 - every option is an argument: that is how typer reads a command
    spec: Spec,
    operation: Annotated[
        str,
        typer.Argument(
            metavar="OPERATION",
            help='Its operationId, "METHOD /path", or the name of a tool; of a JSON Schema `schema`, or the name of '
            "its file without the ending.",
        ),
    ],
    body: Annotated[
        Path,
        typer.Argument(
            metavar="BODY",
            help="A file with the JSON of the request body, or of the arguments of a tool; - for standard input.",
        ),
    ],
    form: Form = Told.TEXT,
    whole: Annotated[
        bool,
        typer.Option("--arguments", help="BODY has the arguments of the whole call: path, query and body together."),
    ] = False,
    fail_on: _FailOn = Heavy.ERROR,
    output: Output = None,
) -> None:
    """Check one body, or the arguments of one call, against SPEC, and say what would make it fit.

    Findings name fields, places and types. No value of BODY is ever shown. An error is what the contract refuses; a
    warning is a key that BODY has twice; notes are fields that SPEC neither declares nor refuses, read-only ones, and
    formats that do not fit.

    Exit status: 0 nothing counts, 1 something does, 2 SPEC or BODY cannot be read, or SPEC has no such OPERATION,
    3 OPERATION is a tool without a schema, whose calls are not judged.
    """
    with answering():
        from theodolite.cli.guarding import Call, checked  # noqa: PLC0415 - costs more than --help does

        call = Call(spec=spec, operation=operation, body=body, whole=whole)
        raise typer.Exit(checked(call, form, fail_on, output))


@guard.command(epilog="Example: theodolite guard diff v1/openapi.json v2/openapi.json --format junit")
def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The contract as it was, in any form that SPEC may have.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The contract as it is now.")],
    form: Form = Told.TEXT,
    fail_on: Annotated[
        Graded,
        typer.Option(
            "--fail-on",
            parser=one_of(Graded),
            metavar=alternatives(Graded),
            help="Exit with 1 for changes from this grade on, breaking being the worst; others are shown.",
        ),
    ] = Graded.BREAKING,
    output: Output = None,
) -> None:
    """Say what changed from OLD to NEW, and whether calls that kept to OLD still keep to NEW.

    What cannot be shown to be harmless is breaking. Changes of words alone are told too: models go by them.

    Exit status: 0 nothing counts, 1 something does, 2 OLD or NEW cannot be read, 3 neither has an operation.
    """
    with answering():
        from theodolite.cli.guarding import differing  # noqa: PLC0415 - costs more than --help does

        raise typer.Exit(differing(old, new, form, fail_on, output))


@guard.command(epilog="Example: theodolite guard drift recordings/ --spec openapi.json")
def drift(  # noqa: PLR0917 - every option is an argument: that is how typer reads a command
    paths: Paths,
    spec: Annotated[
        Path | None,
        typer.Option(
            "--spec",
            metavar="SPEC",
            help="Hold calls against this contract, in any form that `guard lint` reads.",
            show_default="the tools that each session declares",
        ),
    ] = None,
    form: ShortFormat = ShortForm.TEXT,
    baseline: Annotated[
        int,
        typer.Option("--baseline", min=1, metavar="N", help="The first N calls of an operation say what is usual."),
    ] = 500,
    observe: Annotated[
        bool,
        typer.Option("--observe", metavar="", help="Count what the contract neither declares nor forbids, too."),
    ] = False,
    reader: ReaderName = None,
    output: Output = None,
) -> None:
    """Say how often recorded calls diverge from their contracts, where and how, and whether that has risen.

    Calls count in the order in which they are read, a folder by its file names. Of calls of an operation that fail one
    after the other in a session, as retries do, the first counts. A rise is told with a chance of a false alarm of 1 in
    100 for each operation, place and kind.

    Exit status: 0 nothing has risen, 1 something has, 2 a file cannot be read or is of no known form, 3 no operation
    was called more often than its baseline, or a part could not be read.
    """
    with answering():
        from theodolite.cli.drifting import Calls, drifted  # noqa: PLC0415 - costs more than --help does

        calls = Calls(paths=tuple(paths), spec=spec, baseline=baseline, observe=observe, reader=reader)
        raise typer.Exit(drifted(calls, form, output))
