"""What a store's tables say, as records, heads and registry. Each column is checked: the file may be another's work."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final

import msgspec
from msgspec import Raw, Struct
from sqlalchemy import Connection, Select, and_, func, select, tuple_

from theodolite.core.store import Head, Kind, Record, Registry
from theodolite.stores.sqlite.schema import CODES, HEADS, RECORDS, REGISTRY, TamperedError

__all__ = (
    "Filter",
    "head_at",
    "head_of",
    "heads",
    "idle",
    "last_head",
    "last_record",
    "records",
    "registry",
    "strays",
)

# Rows that are fetched at once: enough to hide the cost of a fetch, and a few MB at most with ordinary payloads.
_FETCH: Final = 500


class Filter(Struct, frozen=True, kw_only=True):
    """Which records to read: all that fit every field that is not None."""

    session: str | None = None
    since: float | None = None
    until: float | None = None
    code: str | None = None


class _Row(Struct, frozen=True, array_like=True, gc=False):
    session: str
    n: int
    at: float
    kind: Kind
    payload: bytes | None
    salt: str | None
    digest: str
    previous: str
    hash: str
    code: str | None = None


_HEAD: Final = select(*HEADS.c)
_RECORD: Final = select(*(RECORDS.c[name] for name in _Row.__struct_fields__ if name != "code"))


def _selection(wanted: Filter) -> Select[tuple[object, ...]]:
    same = and_(CODES.c.session == RECORDS.c.session, CODES.c.n == RECORDS.c.n)
    query = _RECORD.add_columns(CODES.c.code).outerjoin_from(RECORDS, CODES, same)
    if wanted.session is not None:
        query = query.where(RECORDS.c.session == wanted.session)
    if wanted.since is not None or wanted.until is not None:
        # Both bounds, always: with one alone SQLite walks the whole table to save itself a sort.
        since = -math.inf if wanted.since is None else wanted.since
        until = math.inf if wanted.until is None else wanted.until
        query = query.where(RECORDS.c.at.between(since, until))
    if wanted.code is not None:
        found = CODES.alias()
        place = tuple_(RECORDS.c.session, RECORDS.c.n)
        query = query.where(place.in_(select(found.c.session, found.c.n).where(found.c.code == wanted.code)))
    return query.order_by(RECORDS.c.session, RECORDS.c.n, CODES.c.place)


def records(connection: Connection, wanted: Filter) -> Iterator[Record]:
    """Yield the records that fit, by session and n, holding a few hundred at once. Raises TamperedError."""
    rows = connection.execution_options(yield_per=_FETCH).execute(_selection(wanted))
    for _, lines in groupby(map(_row, rows), key=attrgetter("session", "n")):
        found = list(lines)
        yield _record(found[0], tuple(line.code for line in found if line.code is not None))


def last_record(connection: Connection, session: str) -> Record | None:
    """Return the newest record of a session, without its codes. Raises TamperedError."""
    query = _RECORD.where(RECORDS.c.session == session).order_by(RECORDS.c.n.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    return None if row is None else _record(_row(row), ())


def _row(row: Sequence[object]) -> _Row:
    try:
        # bytes as they are: text would be taken for base64, and two contents of a cell for one payload.
        return msgspec.convert(tuple(row), _Row, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise TamperedError(f"record {row[1]!r} of session {row[0]!r}: {error}") from error


def _record(row: _Row, codes: tuple[str, ...]) -> Record:
    return Record(
        session=row.session,
        n=row.n,
        at=row.at,
        kind=row.kind,
        codes=codes,
        payload=None if row.payload is None else Raw(row.payload),
        salt=row.salt,
        digest=row.digest,
        previous=row.previous,
        hash=row.hash,
    )


def strays(connection: Connection) -> Iterator[tuple[str, int]]:
    """Yield the places that have codes and no record. Raises TamperedError."""
    same = and_(CODES.c.session == RECORDS.c.session, CODES.c.n == RECORDS.c.n)
    query = select(CODES.c.session, CODES.c.n).distinct().outerjoin_from(CODES, RECORDS, same)
    for row in connection.execute(query.where(RECORDS.c.hash.is_(None)).order_by(CODES.c.session, CODES.c.n)):
        try:
            yield msgspec.convert(tuple(row), tuple[str, int])
        except msgspec.ValidationError as error:
            raise TamperedError(f"codes without a record: {error}") from error


def idle(connection: Connection, before: float) -> dict[str, int]:
    """Return the sessions whose newest record is older, with how many payloads are left; erasures do not count."""
    left = func.count(func.coalesce(RECORDS.c.payload, RECORDS.c.salt))
    query = select(RECORDS.c.session, left).where(RECORDS.c.kind != Kind.ERASURE.value).group_by(RECORDS.c.session)
    query = query.having(func.max(RECORDS.c.at) < before, left > 0).order_by(RECORDS.c.session)
    return {str(session): int(count) for session, count in connection.execute(query)}


def head_of(connection: Connection, session: str) -> Head | None:
    """Return the head row of a session. Raises TamperedError."""
    return next(_heads(connection, _HEAD.where(HEADS.c.session == session)), None)


def head_at(connection: Connection, position: int) -> Head | None:
    """Return the head row in a place of the registry. Raises TamperedError."""
    return next(_heads(connection, _HEAD.where(HEADS.c.position == position)), None)


def last_head(connection: Connection) -> Head | None:
    """Return the head row of the newest session. Raises TamperedError."""
    return next(_heads(connection, _HEAD.order_by(HEADS.c.position.desc()).limit(1)), None)


def heads(connection: Connection) -> Iterator[Head]:
    """Yield all head rows by position. Raises TamperedError."""
    return _heads(connection.execution_options(yield_per=_FETCH), _HEAD.order_by(HEADS.c.position))


def _heads(connection: Connection, query: Select[tuple[object, ...]]) -> Iterator[Head]:
    for row in connection.execute(query).mappings():
        try:
            yield msgspec.convert(row, Head)
        except msgspec.ValidationError as error:
            raise TamperedError(f"the head of session {row['session']!r}: {error}") from error


def registry(connection: Connection) -> Registry | None:
    """Return the registry row. Raises TamperedError."""
    row = connection.execute(select(REGISTRY)).mappings().one_or_none()
    try:
        return None if row is None else msgspec.convert(row, Registry)
    except msgspec.ValidationError as error:
        raise TamperedError(f"the registry of sessions: {error}") from error
