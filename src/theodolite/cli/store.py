"""`theodolite store VERB`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from theodolite.cli.exits import answering

__all__ = ("Lines", "erase", "expire", "export", "heads", "store", "verify")

store = typer.Typer(no_args_is_help=True, help="Look after what was kept.")

_File = Annotated[Path, typer.Argument(metavar="FILE", help="The SQLite file of a store.")]
_Key = Annotated[Path | None, typer.Option("--key-file", metavar="FILE", help="The key of the store, if it has one.")]
_Agreed = Annotated[bool, typer.Option("--yes", help="Ask no question.")]
_Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="The configuration; ./theodolite.toml otherwise, if there."),
]


class Lines(StrEnum):
    """The forms of an export."""

    JSONL = "jsonl"


@store.callback()
def _store() -> None:
    """Look after what was kept."""


@store.command(epilog="Example: theodolite store verify evidence.db --key-file evidence.key")
def verify(
    file: _File,
    key_file: Annotated[
        Path | None,
        typer.Option("--key-file", metavar="FILE", help="The key that sealed the store's heads, if there is one."),
    ] = None,
    kept: Annotated[
        Path | None,
        typer.Option(
            "--heads",
            metavar="HEADS",
            help="Heads kept elsewhere, as `theodolite store heads` wrote them: each must still lie on its chain.",
        ),
    ] = None,
) -> None:
    """Look for records that were changed, removed, reordered, added or erased, and say what could not be shown.

    Reads FILE and never writes to it; a read-only copy will do.

    Exit status: 0 nothing is wrong, 1 something is, 2 FILE is not a store, or the key or HEADS cannot be read.
    """
    with answering():
        from theodolite.cli.verifying import verified  # noqa: PLC0415 - SQLAlchemy costs more than --help does

        text, intact = verified(file, key_file, kept)
        sys.stdout.write(text)
        raise typer.Exit(0 if intact else 1)


@store.command(epilog="Example: theodolite store heads evidence.db --output heads.jsonl")
def heads(
    file: _File,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="A new file to write to, instead of standard output."),
    ] = None,
) -> None:
    """Write the head of every session as JSON lines, to be kept where whoever writes FILE cannot.

    They hold names of sessions and hashes, no text. `theodolite store verify --heads` finds with them that older copies
    were put back. Verify FILE before: they say what it holds now, right or wrong.

    Exit status: 0 they are written, 2 FILE is not a store, or the output is there already or cannot be written.
    """
    with answering():
        from theodolite.cli.verifying import write_heads  # noqa: PLC0415 - SQLAlchemy costs more than --help does

        write_heads(file, output)


@store.command(epilog="Example: theodolite store export evidence.db --bundle evidence.zip --key-file evidence.key")
def export(  # noqa: PLR0913, PLR0917 - typer makes an option of each argument
    file: _File,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="A new file to write to, instead of standard output."),
    ] = None,
    bundle: Annotated[
        Path | None,
        typer.Option(
            "--bundle",
            metavar="ZIP",
            help="A new zip file for an auditor: records, heads, versions, and a script that verifies them.",
        ),
    ] = None,
    sessions: Annotated[
        list[str] | None, typer.Option("--session", metavar="ID", help="This session alone; may be given again.")
    ] = None,
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="From this date or time on, in UTC unless it says more.")
    ] = "",
    until: Annotated[
        str, typer.Option("--until", metavar="TIME", help="To this time, or to the end of this date.")
    ] = "",
    form: Annotated[Lines, typer.Option("--format", "-f", help="jsonl: a record a line.")] = Lines.JSONL,
    unseal: Annotated[bool, typer.Option("--unseal", help="Open sealed payloads with the key of --key-file.")] = False,
    key_file: _Key = None,
    calibration: Annotated[
        Path | None,
        typer.Option("--calibration", metavar="FILE", help="For the bundle; the configuration's otherwise."),
    ] = None,
    config: _Config = None,
) -> None:
    """Write records as they are kept, redacted, as JSON lines, or as the bundle that an auditor is given.

    Reads FILE as it is at one moment, and never writes to it. Payloads that are sealed stay so without --unseal.

    Exit status: 0 it is written, 1 a bundle is written of a store that is not intact, 2 FILE is not a store, or the
    output is there already or cannot be written.
    """
    del form  # there is one
    with answering():
        from theodolite.cli.exporting import Export, export_records  # noqa: PLC0415 - SQLAlchemy, as above

        request = Export(
            file=file,
            output=output,
            bundle=bundle,
            sessions=tuple(dict.fromkeys(sessions or ())),
            since=since,
            until=until,
            unseal=unseal,
            key_file=key_file,
            calibration=calibration,
            config=config,
        )
        raise typer.Exit(export_records(request))


@store.command(epilog="Example: theodolite store erase evidence.db --session s-42 --reason 'asked for by the customer'")
def erase(  # noqa: PLR0917 - as above
    file: _File,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why: kept with the erasure, for good.")],
    sessions: Annotated[
        list[str] | None, typer.Option("--session", metavar="ID", help="This session; may be given again.")
    ] = None,
    before: Annotated[
        str, typer.Option("--before", metavar="TIME", help="Every session whose newest record is older than this.")
    ] = "",
    key_file: _Key = None,
    agreed: _Agreed = False,
) -> None:
    """Take the payloads of sessions out of FILE for good; hashes stay, and the chain still verifies.

    A record of each erasure says how many payloads were taken, and why. The file is rewritten, so that no byte of them
    is left in it. Asks before, on a terminal.

    Exit status: 0 they are gone, or there were none, 2 nothing or not all was erased.
    """
    with answering():
        from theodolite.cli.erasing import Erasing, erase_payloads  # noqa: PLC0415 - SQLAlchemy, as above

        request = Erasing(file=file, key_file=key_file, agreed=agreed)
        raise typer.Exit(erase_payloads(request, tuple(dict.fromkeys(sessions or ())), before, reason))


@store.command(epilog="Example: theodolite store expire evidence.db --older-than 90d --key-file evidence.key --yes")
def expire(
    file: _File,
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="Such as 36h, 90d, 12w; `store.keep` otherwise.")
    ] = "",
    key_file: _Key = None,
    agreed: _Agreed = False,
    config: _Config = None,
) -> None:
    """Erase the payloads of every session whose newest record is older than that, as `store erase` does.

    Nothing expires by itself: run this daily where a retention period is promised.

    Exit status: 0 they are gone, or there were none, 2 nothing or not all was erased.
    """
    with answering():
        from theodolite.cli.erasing import Erasing, expire_payloads  # noqa: PLC0415 - SQLAlchemy, as above

        request = Erasing(file=file, key_file=key_file, agreed=agreed)
        raise typer.Exit(expire_payloads(request, older_than, config))
