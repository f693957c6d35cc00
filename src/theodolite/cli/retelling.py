"""From reports that were kept as JSON to another form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from theodolite.cli.choices import Retold
from theodolite.cli.output import spared, writing
from theodolite.core.errors import ConfigError
from theodolite.reports.document import SessionReport, Summary
from theodolite.reports.summaries import Summaries

__all__ = ("retell",)


class _Kept(Struct, frozen=True):
    """A document whose sessions wait to be read, one at a time."""

    schema: Literal[1]
    sessions: list[msgspec.Raw]
    summary: Summary


def retell(files: Sequence[Path], form: Retold, output: Path | None) -> None:
    """Write reports as one, in another form. Raises ConfigError for a file that is no report.

    Holds one file at a time as it is, and one session of it that was read.
    """
    spared(output, *files)
    summaries = Summaries(version("theodolite"))
    with writing(form, output) as writer:
        for file in files:
            sessions, summary = _read(file)
            thresholds = {} if summary is None else summary.thresholds
            for session in _sessions(sessions, file):
                summaries.add(session)
                writer.add(session, thresholds)
            summaries.close(summary)
        writer.end(summaries.summary())


def _read(file: Path) -> tuple[Sequence[bytes | msgspec.Raw], Summary | None]:
    """Return the sessions of a document, or of lines, which have no summary."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file} cannot be read ({error.strerror})") from error
    start = content[:4096].lstrip()
    if not start.startswith(b'{"session_id"'):
        try:
            kept = msgspec.json.decode(content, type=_Kept)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _no_report(file, str(error)) from error
        return kept.sessions, kept.summary
    return [line for line in content.splitlines() if line.strip()], None


def _sessions(sessions: Sequence[bytes | msgspec.Raw], file: Path) -> Iterator[SessionReport]:
    decoder = msgspec.json.Decoder(SessionReport)
    for number, session in enumerate(sessions, 1):
        try:
            yield decoder.decode(session)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _no_report(file, f"session {number}: {error}") from error


def _no_report(file: Path, why: str) -> ConfigError:
    return ConfigError(
        f"{file} is not what this version of `theodolite scan` writes with --format json or jsonl ({why}): scan again"
    )
