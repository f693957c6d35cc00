"""The files of triage: a baseline of findings that are known, and suppressions that somebody answers for."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from theodolite.config.settings import nearest, read_named
from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.core.errors import ConfigError
from theodolite.core.text import printable
from theodolite.reports.escaping import ascii_json
from theodolite.reports.findings import SCHEME, findings
from theodolite.reports.totals import Origin
from theodolite.reports.triage import Standing, Suppression, Triage
from theodolite.runtime.replay import Sighting

__all__ = ("SUPPRESSIONS", "Baseline", "read_baseline", "read_marks", "read_suppressions", "triage_of")

SUPPRESSIONS = "theodolite-suppressions.toml"
PAGE = "The keys are on the page docs/reference/triage.md."

# How far ahead a suppression may expire. Our choice: whoever answers for one looks at it again each year.
AHEAD = timedelta(days=366)

_FINGERPRINT = re.compile(rf"{SCHEME}:[0-9a-f]{{32}}\Z")
_KEYS = [name for name in Suppression.__struct_fields__ if name != "entry"]


class _Known(Struct, frozen=True):
    """What a baseline needs of a finding, in whichever form."""

    fingerprint: str
    standing: Standing = Standing.KNOWN
    code: str = ""
    session: str = ""


class _Session(Struct):
    findings: list[_Known]


class _Scan(Struct):
    schema: Literal[1]
    sessions: list[_Session]


class _File(Struct):
    theodolite: Literal["baseline"]
    version: Literal[1]
    findings: list[_Known]


_ENCODER = msgspec.json.Encoder()


def triage_of(baseline: Path | None, suppressions: Path | None, today: date) -> Triage:
    """Return what tells new findings from others. Raises ConfigError for a file that is not what it should be."""
    source, listed = read_suppressions(suppressions, today)
    return Triage(
        today=today,
        known=() if baseline is None else read_baseline(baseline),
        suppressions=listed,
        baseline="" if baseline is None else str(baseline),
        source=source,
    )


def read_baseline(path: Path) -> frozenset[str]:
    """Return the fingerprints that a file knows.

    It is one that `Baseline` wrote, or the report of a scan as JSON or JSON lines; of a report, without the findings
    that were suppressed: those are known only until their suppression expires. Raises ConfigError for anything else, an
    empty file too.
    """
    known = [item.fingerprint for item in _listed(path, read_named(path)) if item.standing is not Standing.SUPPRESSED]
    for fingerprint in known:
        if not _FINGERPRINT.match(fingerprint):
            raise ConfigError(
                f"{path} holds {fingerprint!r}, which is no fingerprint of this version ({SCHEME}:...): "
                "make the baseline anew with --write-baseline"
            )
    return frozenset(known)


def _listed(path: Path, text: bytes) -> list[_Known]:
    try:
        found = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        found = {}
    try:
        if "theodolite" in found:
            return msgspec.json.decode(text, type=_File).findings
        if "sessions" in found:
            sessions = msgspec.json.decode(text, type=_Scan).sessions
        else:
            sessions = msgspec.json.Decoder(_Session).decode_lines(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ConfigError(
            f"{path} is no baseline ({error}): give a file of --write-baseline, or a report of this version of "
            "theodolite in the form json or jsonl"
        ) from error
    if not found and not sessions:
        raise ConfigError(f"{path} is empty, so that it is no baseline: make one with --write-baseline")
    return [item for session in sessions for item in session.findings]


class Baseline:
    """Collects the findings of a scan, to be known in the next one; those that are suppressed are left out.

    Raises ConfigError for a file that would take the place of something else, or that has no folder.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found: list[_Known] = []
        if not path.parent.is_dir():
            raise ConfigError(f"--write-baseline {path}: there is no folder {path.parent}")
        if path.exists():
            _spared(path)

    def add(self, sighting: Sighting, origin: Origin) -> None:
        """Take the findings of a session."""
        self._found += [
            _Known(fingerprint=finding.fingerprint, code=finding.code, session=printable(sighting.session))
            for finding in findings(sighting)
            if origin.mark(finding).standing is not Standing.SUPPRESSED
        ]

    def write(self) -> int:
        """Write the file, a finding a line, sorted, and return how many. Raises ConfigError where it cannot be."""
        rows = sorted((item.session, item.code, item.fingerprint) for item in self._found)
        lines = [_row(fingerprint=mark, code=code, session=session) for session, code, mark in rows]
        head, body = '{"theodolite": "baseline", "version": 1, "findings": [', ",\n".join(lines)
        try:
            self._path.write_text(f"{head}\n{body}\n]}}\n" if lines else f"{head}]}}\n", encoding="ascii")
        except OSError as error:
            raise ConfigError(f"the baseline cannot be written to {self._path} ({error.strerror})") from error
        return len(rows)


def _row(**values: str) -> str:
    return ascii_json(_ENCODER.encode(values)).decode()


def _spared(path: Path) -> None:
    text = read_named(path)
    try:
        msgspec.json.decode(text, type=_File)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ConfigError(f"--write-baseline {path} is there and is no file of it: name another file") from error


def read_marks(path: Path | None) -> tuple[Suppression, ...]:
    """Return the marks of false alarm in a file of suppressions, those that expired too; none where none is named.

    Raises ConfigError as `read_suppressions` does, but for no date.
    """
    return () if path is None else tuple([one for one in read_suppressions(path, None)[1] if one.false_alarm])


def read_suppressions(path: Path | None, today: date | None) -> tuple[str, tuple[Suppression, ...]]:
    """Return the file of suppressions that is used, "" for none, and what it holds.

    It is the one given, or ./theodolite-suppressions.toml where that is there. Raises ConfigError for a file that
    cannot be read, for a key or value that does not belong there, and for a date more than 366 days ahead of `today`.
    """
    if path is None:
        path = Path(SUPPRESSIONS)
        if not (path.is_symlink() or path.exists()):
            return "", ()
    try:
        document = tomllib.loads(read_named(path).decode())
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error
    for key in document:
        if key != "suppress":
            raise ConfigError(f"{path}: unknown key {key!r}; each suppression is a table [[suppress]]. {PAGE}")
    tables: object = document.get("suppress", [])
    if not is_sequence(tables):
        raise ConfigError(f"{path}: each suppression is a table [[suppress]], with two brackets. {PAGE}")
    return str(path), tuple(
        [_suppression(f"{path}: suppression {n}", n, one, today) for n, one in enumerate(tables, 1)]
    )


def _suppression(where: str, entry: int, table: object, today: date | None) -> Suppression:
    given: Mapping[object, object] = table if is_mapping(table) else {}
    for key in given:
        if key not in _KEYS:
            raise ConfigError(f"{where}: unknown key {key!r}; {nearest(str(key), _KEYS)}")
    try:
        made = msgspec.convert({**given, "entry": entry}, Suppression)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {error}. {PAGE}") from error
    if made.fingerprint and not _FINGERPRINT.match(made.fingerprint):
        raise ConfigError(f"{where}: {made.fingerprint!r} is no fingerprint of this version ({SCHEME}: and 32 digits)")
    if today is not None and made.expires > today + AHEAD:
        raise ConfigError(f"{where}: {made.expires} is too far ahead: it may expire {today + AHEAD} at the latest")
    return made
