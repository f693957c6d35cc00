"""What the arguments of a call say of it, by their names and forms.

Limits. Of the arguments 256 values are read, the first of them in order. What a text says that is sent or written is
not looked into: a link in a mail's body is not where the mail goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from itertools import islice

import msgspec

from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.core.intent import DataFlow, DestinationKind, Operation, Permission, TargetKind
from theodolite.features.intents.addresses import BARE_METADATA, mail_domain, place_of
from theodolite.features.intents.code import read_code
from theodolite.features.intents.commands import read_command
from theodolite.features.intents.names import Form, Named, words
from theodolite.features.intents.paths import looks_like_path
from theodolite.features.intents.places import Places
from theodolite.features.intents.tables import table

__all__ = ("read_arguments",)

_MOST = 256
_ATOMS = (int, float, type(None))  # no values to look into
_OBJECT = 16_384  # of a text that is decoded: our choice, as for commands
_LONGEST = 2_048  # of a value that may be an address; RFC 9110 asks for 8,000 of a URI, of which the rest is its query


class _Key(StrEnum):
    COMMAND = "command"
    CODE = "code"
    URL = "url"
    PATH = "path"
    RECIPIENT = "recipient"
    CONTENT = "content"
    OTHER = "other"


# To look a member up in its enum takes Python 3.11 four times as long as a name of the module: what each call asks for.
_COMMAND, _CODE, _URL, _PATH, _RECIPIENT, _CONTENT, _OTHER = _Key
_SHELL, _ASKS = Form.SHELL, Permission.NETWORK

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


# Of tools that run commands: the rest of a command, and what is typed into a terminal.
_WORD_LISTS = frozenset({"args", "argv", "arguments"})
_TYPED = frozenset({"input", "keystrokes", "keys", "args", "argv", "arguments"})
# Of tools that ask the network: what goes along with the question.
_BODIES = table("body data json payload form params headers header cookies files content")
_BARE_METHODS = frozenset({"GET", "get", "HEAD", "head"})
_ADDRESS = re.compile(r"\s*(\d{1,3}(?:\.\d{1,3}){3})(?:[:/]|\s*\Z)")


def read_arguments(given: Mapping[str, object], known: Named, places: Places) -> None:
    """Note what the arguments of a call reach. Linear in the size of what is read."""
    writes = known.operation is Operation.FILE_WRITE
    if known.form is _SHELL:
        given = _one_command(given)
    elif known.permission is _ASKS and _has_body(given):
        places.carried()
    for name, value in islice(_values(given), _MOST):
        _read(_role(name[:64], known.form), value, known, places, writes=writes)


def _one_command(given: Mapping[str, object]) -> Mapping[str, object]:
    """Return the arguments of a shell tool with a program and the list of its words as one command."""
    for key in _WORD_LISTS & given.keys():
        listed = given[key]
        if is_sequence(listed) and all(isinstance(word, str) for word in listed[:_MOST]):
            name = next((name for name in given if _key(name[:64]) is _COMMAND), "command")
            program = given.get(name, ())
            return {**given, key: "", name: [*(program if is_sequence(program) else [program]), *listed[:_MOST]]}
    return given


def _has_body(given: Mapping[str, object]) -> bool:
    """Whether a tool that asks the network is given something to take along, besides an address."""
    for name, value in given.items():
        last = _last_word(name[:64])
        if value and (last in _BODIES or (last == "method" and value not in _BARE_METHODS)):
            return True
    return False


@lru_cache(maxsize=4096)
def _last_word(name: str) -> str:
    return "".join(words(name)[-1:])


@lru_cache(maxsize=4096)
def _role(name: str, form: Form) -> _Key:
    key = _key(name)
    if key is _COMMAND and form is Form.EDITOR:
        return _OTHER
    if form is Form.CODE and key in {_OTHER, _CONTENT, _COMMAND}:
        return _CODE
    if form is _SHELL and (key is _CODE or name.lower() in _TYPED):
        return _COMMAND
    return _OTHER if form is _SHELL and key is _CONTENT else key


@lru_cache(maxsize=4096)
def _key(name: str) -> _Key:
    spoken = words(name)
    for word in (spoken[-1:], spoken):
        for one in word:
            if one in _KEYS:
                return _KEYS[one]
    return _OTHER


def _read(key: _Key, value: str, known: Named, places: Places, *, writes: bool) -> None:
    if key is _COMMAND:
        read_command(value, places)
    elif key is _CODE and known.form is not Form.OTHER:
        read_code(value, places)
    elif key is _RECIPIENT and known.form is Form.SEND and known.operation is Operation.NETWORK_REQUEST:
        _receives(value, places)
    elif key is _URL and len(value) <= 8 * _LONGEST:
        _addressed(value, known, places)
    elif key is _PATH and "://" not in value[:64]:
        _located(value, known, places, writes=writes)
    elif key is not _CONTENT and len(value) <= _LONGEST:
        if "://" in value[:32] or ("." in value and _is_metadata(value)):
            _addressed(value, known, places)
        elif ("/" in value or "\\" in value) and looks_like_path(value):
            _located(value, known, places, writes=writes)


def _located(value: str, known: Named, places: Places, *, writes: bool) -> None:
    if known.lists:
        places.names(value)
    else:
        places.file(value, writes=writes)


def _is_metadata(value: str) -> bool:
    """Whether a value is the address of a metadata service, written out as such, under whatever name it stands."""
    found = _ADDRESS.match(value)
    return found is not None and place_of(found[1]).target is TargetKind.CLOUD_METADATA


def _decoded(name: str, value: str) -> Mapping[str, object] | None:
    """Return the object that a text with a brace first is in JSON, where it stands under a name that says nothing."""
    if len(value) > _OBJECT or _key(name[:64]) is not _OTHER:
        return None
    try:
        return msgspec.json.decode(value, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):  # no JSON, or deeper than anything that is meant
        return None


def _addressed(value: str, known: Named, places: Places) -> None:
    if "@" in value and "/" not in value:
        _receives(value, places)
        return
    if value.strip().lower() in BARE_METADATA:
        return  # "metadata" names a site, a section or a list far more often than a host
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
    waiting: list[tuple[str, object]] = list(given.items())[_MOST - 1 :: -1]
    decoded = False
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, str):
            held = None if decoded or value[:1] != "{" else _decoded(name, value)
            if held is None:
                yield name, value
            else:
                decoded = True
                waiting.append((name, held))
        elif isinstance(value, _ATOMS):
            continue
        elif is_sequence(value):
            items = list(value[:_MOST])
            if name and _key(name[:64]) is _COMMAND and all(isinstance(item, str) for item in items):
                yield name, " ".join(str(item) if " " not in str(item) else f"'{item}'" for item in items)
            else:
                waiting += [(name, item) for item in reversed(items)]
        elif is_mapping(value):
            waiting += [(str(key), item) for key, item in reversed(list(value.items())[:_MOST])]
