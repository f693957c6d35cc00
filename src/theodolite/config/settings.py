"""The settings of theodolite.toml, strictly decoded: an unknown key is an error that names the nearest valid one."""

from __future__ import annotations

import difflib
import re
import stat
import tomllib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import get_args, get_type_hints

import msgspec
from msgspec import Struct

from theodolite.config.models import KINDS, ModelSettings, OpenAISettings, PanelSettings
from theodolite.core.arguments import is_mapping
from theodolite.core.budget import Budget
from theodolite.core.errors import ConfigError
from theodolite.core.intent import (
    DataFlow,
    DestinationKind,
    Effect,
    Operation,
    Provenance,
    Role,
    TargetKind,
    ToolRule,
)
from theodolite.core.policy import Mode
from theodolite.core.redaction import Profile
from theodolite.core.text import brief, printable

__all__ = (
    "FILE",
    "PolicySettings",
    "Settings",
    "StoreSettings",
    "age",
    "explained",
    "keys_of",
    "naming",
    "nearest",
    "read_named",
    "read_settings",
    "shown",
    "trusted_tools",
)

FILE = "theodolite.toml"
PAGE = "The keys and values are on the page docs/reference/configuration.md."

# Keys whose value is one of a few words; `arguments[]` is each value of that table.
_WORDS: Mapping[str, type[StrEnum]] = {
    "profile": Profile,
    "default": Mode,
    "effect": Effect,
    "operation": Operation,
    "target": TargetKind,
    "destination": DestinationKind,
    "provenance": Provenance,
    "flow": DataFlow,
    "arguments[]": Role,
}
# Tables whose keys the operator chooses, what their values are, and the words of those that are no table.
_OPEN_TABLES: tuple[tuple[str, object, type[StrEnum] | None], ...] = (
    ("policy.modes", Mode, Mode),
    ("tools", Effect | ToolRule, Effect),
    ("detectors", dict, None),
)
# Keys of tables that the operator names: what somebody means who puts one elsewhere.
_OPEN_KEYS = (
    *[f"tools.NAME.{field}" for field in ToolRule.__struct_fields__],
    "detectors.NAME.enabled",
    *[f"models.NAME.{field}" for field in OpenAISettings.__struct_fields__],
)
# Where the settings were read: no keys of the file.
_PLACE = ("file", "folder")

# What msgspec calls the kinds of values, in the words of a person who writes a file.
_KINDS: Mapping[str, str] = {
    "bool": "true or false",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "object": "a table",
    "array": "a list",
    "datetime": "a date and time",
    "date": "a date",
    "time": "a time",
}

# How alike the last names of two keys are of which one was meant for the other, as difflib counts. Our choice: two
# letters of three that changed places come to 0.67.
_CLOSE = 0.65

# Characters of a path that an error shows.
_PATH = 200

# Seconds in each unit of an age.
_UNITS = {"h": 3_600, "d": 86_400, "w": 604_800}


def age(text: str) -> float:
    """Return an age in seconds: a whole number of hours, days or weeks. Raises ValueError for anything else.

    >>> age("90d")
    7776000.0
    """
    found = re.fullmatch(r"([0-9]{1,6})([hdw])", text)
    if found is None:
        raise ValueError(f"{brief(text)} is no age: give a number of hours, days or weeks, such as 36h, 90d or 12w")
    return float(found[1]) * _UNITS[found[2]]


class PolicySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[policy]`: how far detectors may go.

    `default` is the mode of each detector that `modes` does not name: enforce, warn or observe. `hold` refuses a call
    whose own acting signal alarms, at any status. `fail_closed` refuses calls when a detector in ENFORCE, or the store,
    fails.
    """

    default: Mode = Mode.WARN
    modes: dict[str, Mode] = {}
    hold: bool = False
    fail_closed: bool = False


class StoreSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[store]`: what is kept, and where.

    `path` is the store's file; without it nothing is kept. `kind` is sqlite, or the name of a store that a plug-in
    brings. `profile` is standard (scrubbed text), categorical (no free text at all) or encrypted (scrubbed text, sealed
    with the key). `key_file` holds the key that authenticates heads, at least 16 bytes. `keep` says how old a session
    may grow before `theodolite store expire` takes its payloads, such as 90d. `raw_events` names a folder in which
    whole sessions are recorded, unredacted; it needs a key. `shelf` names a folder for the live sessions that have open
    inquiries, sealed with the key, until `Monitor.recover` finds them after a restart. `pseudonyms` puts a tag of
    `pseudonym_digits` hexadecimal digits, 4 to 16, into placeholders; it needs a key.
    """

    path: str = ""
    kind: str = "sqlite"
    profile: Profile = Profile.STANDARD
    key_file: str = ""
    keep: str = ""
    raw_events: str = ""
    shelf: str = ""
    pseudonyms: bool = False
    pseudonym_digits: int = 4

    def __post_init__(self) -> None:
        """Reject an age that is none. Raises ValueError, which msgspec gives a place."""
        if self.keep:
            age(self.keep)


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file. Paths in it are relative to the file.

    `detectors` has a table for each detector by name: `enabled`, and the detector's own settings. `tools` maps tool
    names to their effect, read, write or unknown, or to a table that says more (`ToolRule`). `models` has a table for
    each model by name, `panel` says which role each plays, `budget` how much may be asked of them. `calibration` is the
    path of an artefact. `redactor` names the redactor, `plugins = false` leaves out what other packages bring. `file`
    is where they were read, empty for settings of code.
    """

    policy: PolicySettings = PolicySettings()
    store: StoreSettings = StoreSettings()
    detectors: dict[str, dict[str, object]] = {}
    tools: dict[str, Effect | ToolRule] = {}
    models: dict[str, ModelSettings] = {}
    panel: PanelSettings = PanelSettings()
    budget: Budget = Budget()
    calibration: str = ""
    redactor: str = "rules"
    plugins: bool = True
    folder: str = "."
    file: str = ""


def trusted_tools(tools: Mapping[str, Effect | ToolRule]) -> tuple[str, ...]:
    """Return the tools of which the operator says that nobody else writes what they return, sorted."""
    return tuple(sorted(name for name, rule in tools.items() if isinstance(rule, ToolRule) and rule.outside is False))


@contextmanager
def naming(settings: Settings) -> Generator[None, None, None]:
    """Put the file of the settings before what is wrong with them, where they come from one."""
    try:
        yield
    except ConfigError as error:
        if not settings.file:
            raise
        raise ConfigError(f"{settings.file}: {error}") from error


def read_settings(path: Path | None = None) -> Settings:
    """Return the settings of a file; of ./theodolite.toml where it exists and no other is named; else the defaults.

    Raises ConfigError for a file that cannot be read, is not TOML, or holds a key or value that does not belong there.
    """
    if path is None:
        path = Path(FILE)
        if not (path.is_symlink() or path.exists()):
            return Settings()
    document = _parsed(path)
    for place in _PLACE:
        if place in document:
            raise ConfigError(f"{path}: unknown key {place!r}; paths are relative to the file itself")
    _check_open_tables(document, path)
    try:
        return msgspec.convert({**document, "folder": str(path.parent), "file": str(path)}, Settings)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {explained(str(error), keys_of(Settings), elsewhere=_OPEN_KEYS)}") from error


def _parsed(path: Path) -> dict[str, object]:
    written = read_named(path)
    try:
        text = written.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not TOML: {error}{_capitals(text, str(error))}") from error


def _capitals(text: str, fault: str) -> str:
    """Return a hint where the line that is no TOML has true or false as Python writes them."""
    place, lines = re.search(r"at line (\d+),", fault), text.split("\n")
    if place is None or not re.search(r"=\s*(?:True|TRUE|False|FALSE)\b", lines[int(place[1]) - 1]):
        return ""
    return "; true and false are written in small letters"


def _check_open_tables(document: object, path: Path) -> None:
    """Raise ConfigError for what does not belong into the tables whose keys the operator chooses."""
    for table, kind, words in _OPEN_TABLES:
        for key, value in _table(document, table).items():
            try:
                msgspec.convert(value, kind)
            except msgspec.ValidationError as error:
                keys = [f"{table}.{key}.{field}" for field in ToolRule.__struct_fields__]
                raise ConfigError(f"{path}: {explained(str(error), keys, f'{table}.{key}.', words)}") from error
    for name, value in _table(document, "models").items():
        try:
            msgspec.convert(value, ModelSettings)
        except msgspec.ValidationError as error:
            raise ConfigError(f"{path}: {_explained_model(str(error), f'models.{name}', value)}") from error


def read_named(path: Path) -> bytes:
    """Return what a file holds. Raises ConfigError for one that cannot be read, for a folder, and for a pipe.

    A pipe is refused because reading one that nobody writes to would wait without end.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            raise ConfigError(f"{path} is a pipe, and a file is needed: write what it gives to a file, and name that")
        return path.read_bytes()
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise ConfigError(f"{shown(path)} cannot be read: {why}") from error
    except ValueError as error:  # what Python says of a NUL, and of a lone surrogate
        raise ConfigError(f"{shown(path)!a} cannot be read: no file has such a name") from error


def shown(path: Path) -> str:
    """Return a path as an error may show it; no path that leads to anything is much longer."""
    text = str(path)
    return printable(text if len(text) <= _PATH else f"{text[:_PATH]}\N{HORIZONTAL ELLIPSIS}")


def _table(document: object, name: str) -> Mapping[object, object]:
    for part in name.split("."):
        document = document.get(part) if is_mapping(document) else None
    return document if is_mapping(document) else {}


def explained(
    message: str,
    keys: Sequence[str],
    table: str = "",
    words: type[StrEnum] | None = None,
    *,
    elsewhere: Sequence[str] = (),
) -> str:
    """Return msgspec's message about a table in the words of a TOML file, with the nearest of the valid keys.

    `words` may stand in place of the table, `elsewhere` are keys of other tables.
    """
    unknown = re.search(r"unknown field `(.*?)`(?: - at `\$\.?(.*?)`)?$", message)
    if unknown is not None:
        key, shown = [
            ".".join(part for part in (unknown[2], name) if part) for name in (unknown[1], brief(unknown[1])[1:-1])
        ]
        return f"unknown key '{table}{shown}'; {_meant(table + key, keys, elsewhere)}"
    told = re.fullmatch(r"(.*?)(?: - at `\$\.?([^`]*)`)?", message, re.DOTALL)
    fault, at = (message, "") if told is None else (told[1], told[2] or "")
    key = at.replace("[...]", "[]")
    place = ("a value in " if key.endswith("[]") else "") + f"{table}{key}".rstrip(".").removesuffix("[]")
    return f"{_reworded(fault, place, _WORDS.get(_last(key), words) if key else words)}. {PAGE}"


def _reworded(fault: str, place: str, words: type[StrEnum] | None) -> str:
    """Return a fault of the value at a place; what our own types say of theirs stays as it is."""
    kind = re.fullmatch(r"Expected `(.*?)`, got `(.*?)`", fault)
    if kind is not None:
        wanted = " or ".join([_KINDS.get(name, name) for name in kind[1].split(" | ") if name != "null"])
        return f"{place} must be {wanted}, not {_KINDS.get(kind[2], kind[2])}"
    word = re.fullmatch(r"Invalid enum value '(.*)'", fault, re.DOTALL)
    if word is not None and words is not None:
        # No more than its beginning: it may be a key in a wrong place.
        fault = f"{brief(word[1])} is none of {', '.join(words)}"
    missing = re.fullmatch(r"Object missing required field `(.*?)`", fault)
    if missing is not None:
        fault = f"'{missing[1]}' is missing"
    return f"{place}: {fault}" if place else fault


def _meant(key: str, keys: Sequence[str], elsewhere: Sequence[str]) -> str:
    """Return a phrase that names the keys that were probably meant, by their last names: of this table, or of others.

    What stands before the last name is much alike for all keys of a table, and says little. Where none is alike, those
    of this table are named.
    """
    table = key.removesuffix(_last(key))
    for known in (keys, elsewhere):
        named: dict[str, list[str]] = {}
        for one in known:
            named.setdefault(_last(one), []).append(one)
        alike = difflib.get_close_matches(_last(key), named, n=1, cutoff=_CLOSE)
        if alike:
            here = [one for one in named[alike[0]] if one == table + alike[0]]
            return f"did you mean {' or '.join(map(repr, here or named[alike[0]]))}?"
    here = [one for one in keys if one == table + _last(one)]
    return f"known: {', '.join(sorted(here or keys))}"


def _last(key: str) -> str:
    return key.rpartition(".")[2]


def _explained_model(message: str, name: str, table: object) -> str:
    """Return msgspec's message about a model in the words of a TOML file."""
    kind = table.get("kind") if is_mapping(table) else None
    if isinstance(kind, str) and kind not in KINDS:
        return f"{name}: there is no kind {brief(kind)}; known: {', '.join(KINDS)}"
    if "unknown field" in message:
        keys = ["kind", *keys_of(KINDS[kind])] if isinstance(kind, str) else []
        return f"{name}: {explained(message, keys)}"
    return explained(message, [], f"{name}.")


def nearest(name: str, known: list[str]) -> str:
    """Return a phrase that names what was probably meant, or all there is.

    >>> nearest("policy.hodl", ["policy.hold", "store.path"])
    "did you mean 'policy.hold'?"
    """
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"did you mean '{close[0]}'?" if close else f"known: {', '.join(sorted(known))}"


def keys_of(kind: type[Struct], before: str = "") -> list[str]:
    """Return the keys of a table, with those of the tables in it; `before` stands before each.

    >>> keys_of(PanelSettings, "panel.")[:2]
    ['panel.subject', 'panel.shadow']
    """
    hints, keys = get_type_hints(kind), list[str]()
    for name in kind.__struct_fields__:
        if name in _PLACE:
            continue
        keys.append(before + name)
        for one in (hints[name], *get_args(hints[name])):  # the table itself, or one that may be left out
            if isinstance(one, type) and issubclass(one, Struct):
                keys.extend(keys_of(one, f"{before}{name}."))
    return keys
