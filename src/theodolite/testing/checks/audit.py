"""What a piece of code asks of the operating system, seen by the interpreter's own audit events."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ("touches",)

_FORBIDDEN = (
    "open",
    "os.",
    "shutil.",
    "socket.",
    "sqlite3.",
    "subprocess.",
    "time.sleep",  # audited from Python 3.13 on
    "urllib.",
    "http.",
    "glob.",
    "tempfile.",
    "webbrowser.",
    "_thread.",  # as above
)
# Importing looks into folders and reads code; a late import is a question of style, not of what a detector knows.
_IMPORTING = ("os.listdir", "os.scandir", "os.add_dll_directory")
_CODE = (".py", ".pyc", ".so", ".pyd")

_seen: ContextVar[list[str] | None] = ContextVar("seen", default=None)
_installed: list[bool] = []


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    seen = _seen.get()
    if seen is None or not event.startswith(_FORBIDDEN) or event in _IMPORTING:
        return
    target = str(arguments[0]) if arguments else ""
    if event == "open" and target.endswith(_CODE):
        return
    seen.append(f"{event}({target})" if target else event)
    raise PermissionError(f"{event} is input or output, which is not allowed here")


@contextmanager
def touches() -> Generator[list[str], None, None]:
    """Yield a list that fills with each attempt at input or output made inside, on this thread; none succeeds.

    The interpreter never forgets an audit hook: one is installed at the first use, and it is idle outside.

    >>> with touches() as seen:
    ...     try:
    ...         open("secrets.txt")
    ...     except PermissionError:
    ...         pass
    >>> seen
    ['open(secrets.txt)']
    """
    if not _installed:
        sys.addaudithook(_hook)
        _installed.append(True)
    seen: list[str] = []
    token = _seen.set(seen)
    try:
        yield seen
    finally:
        _seen.reset(token)
