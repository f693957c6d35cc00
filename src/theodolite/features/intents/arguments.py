"""What the arguments of a call say of it, by their names and forms.

Limits. Of the arguments 256 values are read, the first of them in order. What a text says that is sent or written is
not looked into: a link in a mail's body is not where the mail goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from functools import lru_cache

from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.core.intent import DataFlow, DestinationKind, Operation, TargetKind
from theodolite.features.intents.addresses import mail_domain
from theodolite.features.intents.code import read_code
from theodolite.features.intents.commands import read_command
from theodolite.features.intents.names import Form, Named, words
from theodolite.features.intents.paths import looks_like_path
from theodolite.features.intents.places import Places

__all__ = ("read_arguments",)

_MOST = 256
_LONGEST = 2_048  # of a value that may be an address; RFC 9110 asks for 8,000 of a URI, of which the rest is its query


class _Key(Enum):
    COMMAND = "command"
    CODE = "code"
    URL = "url"
    PATH = "path"
    RECIPIENT = "recipient"
    CONTENT = "content"
    OTHER = "other"


# The last word of a key decides, then any other: `file_path` and `path_of_file` are both paths.
_KEYS: Mapping[str, _Key] = {
    word: key
    for key, found in {
        _Key.COMMAND: "command commands cmd commandline shell bash",
        _Key.CODE: "code script program python snippet cell javascript",
        _Key.URL: "url urls uri uris link href endpoint webhook host hostname server address domain ip website site",
        _Key.PATH: """path paths file files filename filenames filepath dir directory directories folder cwd workdir
            src dst dest destination source notebook root""",
        _Key.RECIPIENT: "to recipient recipients cc bcc email emails receiver participants attendees invitees",
        _Key.CONTENT: """content contents body text message description comment subject title summary prompt new old
            string str note query pattern regex thought todos edits patch diff""",
    }.items()
    for word in found.split()
}


def read_arguments(given: Mapping[str, object], known: Named, places: Places) -> None:
    """Note what the arguments of a call reach. Linear in the size of what is read."""
    writes = known.operation is Operation.FILE_WRITE
    for count, (name, value) in enumerate(_values(given)):
        if count >= _MOST:
            break
        _read(_role(name, known.form), value, known, places, writes=writes)


def _role(name: str, form: Form) -> _Key:
    key = _key(name[:64])
    if key is _Key.COMMAND and form is Form.EDITOR:
        return _Key.OTHER
    if form is Form.CODE and key in {_Key.OTHER, _Key.CONTENT, _Key.COMMAND}:
        return _Key.CODE
    if form is Form.SHELL and key in {_Key.CODE, _Key.CONTENT}:
        return _Key.COMMAND if key is _Key.CODE else _Key.OTHER
    return key


@lru_cache(maxsize=4096)
def _key(name: str) -> _Key:
    spoken = words(name)
    for word in (spoken[-1:], spoken):
        for one in word:
            if one in _KEYS:
                return _KEYS[one]
    return _Key.OTHER


def _read(key: _Key, value: str, known: Named, places: Places, *, writes: bool) -> None:
    if key is _Key.COMMAND:
        read_command(value, places)
    elif key is _Key.CODE and known.form is not Form.OTHER:
        read_code(value, places)
    elif key is _Key.RECIPIENT and known.form is Form.SEND and known.operation is Operation.NETWORK_REQUEST:
        _receives(value, places)
    elif key is _Key.URL and len(value) <= 8 * _LONGEST:
        _addressed(value, known, places)
    elif key is _Key.PATH and "://" not in value[:64]:
        places.file(value, writes=writes)
    elif key is not _Key.CONTENT and len(value) <= _LONGEST:
        if "://" in value[:32]:
            _addressed(value, known, places)
        elif looks_like_path(value):
            places.file(value, writes=writes)


def _addressed(value: str, known: Named, places: Places) -> None:
    if "@" in value and "/" not in value:
        _receives(value, places)
        return
    if known.operation is Operation.OTHER:
        places.reach.does(Operation.NETWORK_REQUEST)
    if not places.url(value, sends=known.form is Form.SEND):
        places.reach.sends(DestinationKind.UNKNOWN)


def _receives(value: str, places: Places) -> None:
    domain = mail_domain(value)
    if domain:
        places.host(domain, sends=True)
        places.reach.strange = False  # whom a message goes to says nothing of whose content it is
        if places.reach.target is TargetKind.EXTERNAL_URL:
            places.reach.target = TargetKind.UNKNOWN
    else:
        places.reach.sends(DestinationKind.UNKNOWN, DataFlow.LOCAL_TO_EXTERNAL)


def _values(given: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield every text in the arguments with the name that it stands under."""
    waiting: list[tuple[str, object]] = [("", given)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, str):
            yield name, value
        elif is_mapping(value):
            waiting += [(str(key), item) for key, item in reversed(list(value.items())[:_MOST])]
        elif is_sequence(value):
            items = list(value[:_MOST])
            if name and all(isinstance(item, str) for item in items) and _key(name[:64]) is _Key.COMMAND:
                yield name, " ".join(str(item) if " " not in str(item) else f"'{item}'" for item in items)
            else:
                waiting += [(name, item) for item in reversed(items)]
