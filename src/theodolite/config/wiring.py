"""From settings to a wired instrument."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, cast

import msgspec
from msgspec import Struct

from theodolite.config.plugins import plugins
from theodolite.config.settings import Settings, explained, nearest, read_settings
from theodolite.core.calibration import Calibration
from theodolite.core.detector import AnyDetector
from theodolite.core.errors import CalibrationError, ConfigError
from theodolite.core.policy import STARTING_MODES, Policy
from theodolite.core.reader import Reader
from theodolite.core.redaction import Redactor
from theodolite.core.store import Store
from theodolite.core.verifier import Verifier
from theodolite.detectors.trajectory.margin import MarginDetector
from theodolite.detectors.trajectory.shadow_memory import ShadowMemoryDetector
from theodolite.readers.jsonl import EventLines
from theodolite.readers.labelled import LabelledSessions
from theodolite.readers.openai_chat import OpenAIChat
from theodolite.redactors.rules import RuleRedactor
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.recorder import Recorder

__all__ = ("Instrument", "load", "read_key", "wire")

# An HMAC-SHA256 key shorter than this is weaker than the hash: RFC 2104, section 3, asks for 32; 16 is the least that
# NIST SP 800-107, section 5.3.4, lets stand.
KEY_BYTES = 16


_F = TypeVar("_F", bound=Callable[..., object])


class Instrument:
    """A Monitor with what was wired around it. Closing it closes the Monitor and the store."""

    def __init__(
        self, settings: Settings, monitor: Monitor, readers: tuple[Reader, ...], store: Store | None, key: bytes | None
    ) -> None:
        self.settings = settings
        self.monitor = monitor
        self.readers = readers
        self.store = store
        self.key = key

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Close everything."""
        self.close()

    def close(self) -> None:
        """Close all sessions, keep what is pending, close the store. Raises StoreError."""
        self.monitor.close()


def load(path: Path | str | None = None) -> Monitor:
    """Return the Monitor of a settings file; of ./theodolite.toml where it exists; else of the defaults.

    Raises ConfigError, CalibrationError or StoreError. Close it when done: `with theodolite.load(...) as monitor`.
    """
    return wire(read_settings(None if path is None else Path(path))).monitor


def wire(settings: Settings, *, store: Path | None = None, calibration: Path | None = None) -> Instrument:
    """Return the instrument of some settings; a store or calibration named here takes the place of theirs.

    Raises ConfigError, CalibrationError or StoreError with the setting at fault.
    """
    folder = Path(settings.folder)
    key = read_key(folder / settings.store.key_file) if settings.store.key_file else None
    raw = settings.store.raw_events
    if raw and key is None:
        raise ConfigError("store.raw_events needs store.key_file: own events in a recording are sealed with the key")
    kept = store or (folder / settings.store.path if settings.store.path else None)
    fitted = calibration or (folder / settings.calibration if settings.calibration else None)
    detectors, verifiers = _offered_detectors(settings), _offered_verifiers(settings)
    build = partial(
        Monitor,
        _detectors(settings, detectors),
        verifiers=[kind() for kind in verifiers.values()],
        policy=_policy(settings, [*STARTING_MODES, *detectors, *verifiers]),
        redactor=_redactor(settings),
        calibration=_calibration(fitted) if fitted else None,
        effects=settings.tools,
        recorder=Recorder(folder / raw, key) if raw and key else None,
    )
    readers = _readers(settings, key)
    # The store is opened last: what is wrong with the rest leaves no file open.
    opened = _store(settings, kept, key) if kept else None
    monitor = build(store=opened, closing=() if opened is None else (opened.close,))
    return Instrument(settings, monitor, readers, opened, key)


def read_key(path: Path) -> bytes:
    """Return the key of a file, without white space around it. Raises ConfigError when it is too short or not there."""
    try:
        key = path.read_bytes().strip()
    except OSError as error:
        raise ConfigError(f"the key file {path} cannot be read: {error}") from error
    if len(key) < KEY_BYTES:
        raise ConfigError(
            f"the key in {path} has {len(key)} bytes, at least {KEY_BYTES} are needed: "
            "python -c 'import secrets; print(secrets.token_hex(32))'"
        )
    return key


def _policy(settings: Settings, known: list[str]) -> Policy:
    chosen = settings.policy
    for name in chosen.modes:
        if name not in known:
            raise ConfigError(f"policy.modes: there is no detector {name!r}; {nearest(name, known)}")
    return Policy(modes=chosen.modes, default=chosen.default, hold=chosen.hold, fail_closed=chosen.fail_closed)


def _offered(settings: Settings, group: str, own: Mapping[str, _F]) -> dict[str, _F]:
    """Return our own classes and those that plug-ins offer; ours keep their names."""
    if not settings.plugins:
        return dict(own)
    # Whether a plug-in is what its group says is for the check suites to show, not for a type checker here.
    return {**cast("dict[str, _F]", plugins(f"theodolite.{group}")), **own}


def _offered_detectors(settings: Settings) -> dict[str, Callable[..., AnyDetector]]:
    own: dict[str, Callable[..., AnyDetector]] = {
        "margin": MarginDetector,
        "shadow_memory": ShadowMemoryDetector,
    }
    return _offered(settings, "detectors", own)


def _offered_verifiers(settings: Settings) -> dict[str, Callable[[], Verifier]]:
    own: dict[str, Callable[[], Verifier]] = {}
    return _offered(settings, "verifiers", own)


def _detectors(settings: Settings, offered: Mapping[str, Callable[..., AnyDetector]]) -> list[AnyDetector]:
    for name in settings.detectors:
        if name not in offered:
            raise ConfigError(f"detectors: there is no detector {name!r}; {nearest(name, list(offered))}")
    made = [_detector(name, kind, dict(settings.detectors.get(name, {}))) for name, kind in offered.items()]
    return [detector for detector in made if detector is not None]


def _detector(name: str, kind: Callable[..., AnyDetector], given: dict[str, object]) -> AnyDetector | None:
    enabled = given.pop("enabled", True)
    if not isinstance(enabled, bool):
        raise ConfigError(f"detectors.{name}.enabled must be true or false, not {enabled!r}")
    if not enabled:
        return None
    settings: type[Struct] | None = getattr(kind, "settings", None)
    if settings is None:
        if given:
            raise ConfigError(f"detectors.{name} takes no settings but 'enabled', not {min(given)!r}")
        return kind()
    if "enabled" in settings.__struct_fields__:
        given["enabled"] = True
    table = f"detectors.{name}."
    try:
        return kind(msgspec.convert(given, settings))
    except msgspec.ValidationError as error:
        keys = [table + key for key in dict.fromkeys(["enabled", *settings.__struct_fields__])]
        raise ConfigError(f"detectors.{name}: {explained(str(error), keys, table)}") from error


def _readers(settings: Settings, key: bytes | None) -> tuple[Reader, ...]:
    own: dict[str, Callable[[], Reader]] = {
        "theodolite-events": partial(EventLines, key),
        "openai-chat": OpenAIChat,
        "labelled-sessions": LabelledSessions,
    }
    return tuple([kind() for kind in _offered(settings, "readers", own).values()])


def _redactor(settings: Settings) -> Redactor:
    own: dict[str, Callable[..., Redactor]] = {"rules": RuleRedactor}
    offered = _offered(settings, "redactors", own)
    if settings.redactor not in offered:
        raise ConfigError(f"there is no redactor {settings.redactor!r}; {nearest(settings.redactor, list(offered))}")
    return offered[settings.redactor](profile=settings.store.profile)


def _store(settings: Settings, path: Path, key: bytes | None) -> Store:
    own: dict[str, Callable[..., Store]] = {"sqlite": _sqlite}
    offered = _offered(settings, "stores", own)
    kind = settings.store.kind
    if kind not in offered:
        raise ConfigError(f"store.kind: there is no store {kind!r}; {nearest(kind, list(offered))}")
    return offered[kind](path, key=key)


def _sqlite(path: Path, *, key: bytes | None) -> Store:
    # SQLAlchemy takes some 150 ms to import: only those who keep anything pay for it.
    from theodolite.stores.sqlite import SQLiteStore  # noqa: PLC0415

    return SQLiteStore(path, key=key)


def _calibration(path: Path) -> Calibration:
    try:
        document = path.read_bytes()
    except OSError as error:
        raise CalibrationError(f"the calibration {path} cannot be read: {error}") from error
    return Calibration.load(document, str(path))
