"""Payloads taken out of a store for good, after a question."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import typer
from msgspec import Struct

from theodolite.cli.exits import NOTHING
from theodolite.cli.moments import first_moment
from theodolite.config.settings import age, read_settings
from theodolite.config.wiring import store_key
from theodolite.core.errors import ConfigError
from theodolite.core.store import Kind
from theodolite.reports.escaping import inert
from theodolite.reports.layout import counted
from theodolite.stores.sqlite import SQLiteStore

__all__ = ("Erasing", "erase_payloads", "expire_payloads")

# Sessions that the question names. Who erases more knows them by their age.
_NAMED = 5
_NAME = 100


class Erasing(Struct, frozen=True, kw_only=True):
    """What was asked for: the arguments that `store erase` and `store expire` share."""

    file: Path
    key_file: Path | None
    agreed: bool


def erase_payloads(request: Erasing, sessions: tuple[str, ...], before: str, reason: str) -> int:
    """Erase the sessions, or those that ended before a time, and say what was taken. Raises ConfigError, StoreError."""
    if bool(sessions) == bool(before):
        raise ConfigError("say what to erase: --session ID, or --before DATE")
    if not reason.strip():
        raise ConfigError("--reason is kept with the erasure and tells an auditor why payloads are gone: give one")
    with _opened(request) as store:
        found = store.idle(first_moment(before)) if before else {name: _payloads(store, name) for name in sessions}
        return _erase(request, store, found, reason)


def expire_payloads(
    request: Erasing,
    older_than: str,
    config: Path | None,
    clock: Callable[[], float] = time.time,  # noqa: TID251 - the default of an injected clock
) -> int:
    """Erase the sessions that ended longer ago than that, or than `store.keep` of the configuration says.

    Raises ConfigError and StoreError.
    """
    limit = older_than or read_settings(config).store.keep
    if not limit:
        raise ConfigError("say how old is too old: --older-than 90d, or store.keep in the configuration")
    try:
        before = clock() - age(limit)
    except ValueError as error:
        raise ConfigError(f"--older-than: {error}") from error
    with _opened(request) as store:
        return _erase(request, store, store.idle(before), f"older than {limit}")


def _opened(request: Erasing) -> SQLiteStore:
    key = store_key(request.file, request.key_file)
    store = SQLiteStore(request.file, key=key, create=False)
    if key is None and any(head.seal for head in store.heads()):
        store.close()
        raise ConfigError(f"{request.file} is sealed with a key, and what erases must seal: give --key-file")
    return store


def _payloads(store: SQLiteStore, session: str) -> int:
    if store.head(session) is None:
        raise ConfigError(f"there is no session {session!r}; `theodolite store heads` lists them")
    left = [record for record in store.read(session=session) if record.payload is not None]
    return sum(record.kind is not Kind.ERASURE for record in left)


def _erase(request: Erasing, store: SQLiteStore, found: Mapping[str, int], reason: str) -> int:
    file = inert(str(request.file))
    count, total = counted(len(found), "session"), counted(sum(found.values()), "payload")
    if not sum(found.values()):
        if found:  # named, and erased before: what a reader kept from its end then is brought to it now
            store.erase_all(found)
        sys.stdout.write(f"{file}: nothing to erase\n")
        return NOTHING
    named = ", ".join([inert(session, _NAME) for session in list(found)[:_NAMED]]) + ", ..." * (len(found) > _NAMED)
    _agree(request, f"{total} of {count} ({named}) in {file} will be gone for good. Go on?")
    taken = store.erase_all(found, reason=reason)
    sys.stdout.write(
        f"{file}: erased {counted(taken, 'payload')} of {count}; hashes and the reason stay, and the chain verifies\n"
    )
    return NOTHING


def _agree(request: Erasing, question: str) -> None:
    if request.agreed:
        return
    if not sys.stdin.isatty():
        raise ConfigError("nothing was erased: there is nobody to ask; give --yes to erase without a question")
    if not typer.confirm(question, err=True):
        raise ConfigError("nothing was erased")
