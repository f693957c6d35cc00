"""From settings to a wired instrument."""

from __future__ import annotations

import errno
import hmac
from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, cast

from theodolite.config.contracts import checked_by
from theodolite.config.grading import fitted, tuned
from theodolite.config.models import played, players
from theodolite.config.plugins import leave_out, plugins
from theodolite.config.probing import check_asking, fused, gated, given_to_ask
from theodolite.config.settings import Settings, naming, nearest, read_settings
from theodolite.config.tables import configured
from theodolite.core.calibration import Calibration
from theodolite.core.detector import AnyDetector
from theodolite.core.errors import ConfigError, StoreError
from theodolite.core.fusion import AnyFusion
from theodolite.core.inquiry import Role
from theodolite.core.model import Model
from theodolite.core.policy import STARTING_MODES, Policy
from theodolite.core.reader import Reader
from theodolite.core.reading import Failure
from theodolite.core.redaction import CategoricalOnly, Profile, Redactor
from theodolite.core.shelf import Shelf
from theodolite.core.store import Store
from theodolite.core.text import brief
from theodolite.core.verifier import Verifier
from theodolite.detectors.anomaly.detector import AnomalyDetector
from theodolite.detectors.behavior.detector import BehaviorDetector
from theodolite.detectors.fusion import HijackFusion
from theodolite.detectors.payload.detector import PayloadDetector
from theodolite.detectors.trajectory.answer import AnswerDetector
from theodolite.detectors.trajectory.goal_drift import GoalDriftDetector
from theodolite.detectors.trajectory.hijack import HijackDetector
from theodolite.detectors.trajectory.margin import MarginDetector
from theodolite.detectors.trajectory.shadow_memory import ShadowMemoryDetector
from theodolite.readers.agentdojo_runs import AgentDojoRuns
from theodolite.readers.anthropic_messages import AnthropicMessages
from theodolite.readers.inspect_logs import InspectLogs
from theodolite.readers.jsonl import EventLines
from theodolite.readers.labelled import LabelledSessions
from theodolite.readers.openai_chat import OpenAIChat
from theodolite.readers.openai_responses import OpenAIResponses
from theodolite.redactors.rules import Pseudonyms, RuleRedactor
from theodolite.runtime.answers import attempted
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.recorder import Recorder
from theodolite.verifiers.judge import JudgeVerifier
from theodolite.verifiers.triangulation import TriangulationVerifier

if TYPE_CHECKING:
    from theodolite.runtime.drive import Panel

__all__ = ("Instrument", "load", "read_key", "store_key", "wire")

# An HMAC-SHA256 key shorter than this is weaker than the hash: RFC 2104, section 3, asks for 32; 16 is the least that
# NIST SP 800-107, section 5.3.4, lets stand.
KEY_BYTES = 16

_F = TypeVar("_F", bound=Callable[..., object])
_T = TypeVar("_T")

_DETECTORS: Mapping[str, Callable[..., AnyDetector]] = {
    "anomaly": AnomalyDetector,
    "answer": AnswerDetector,
    "behavior": BehaviorDetector,
    "goal_drift": GoalDriftDetector,
    "hijack": HijackDetector,
    "margin": MarginDetector,
    "payload": PayloadDetector,
    "shadow_memory": ShadowMemoryDetector,
}
_ASKING = frozenset({"behavior"})
# The margin is a part of what hijack scores, and would raise each alarm a second time, and its own false ones.
_BY_REQUEST = frozenset({"margin"})
_VERIFIERS: Mapping[str, Callable[..., Verifier]] = {
    "anomaly_judge": JudgeVerifier,
    "triangulation": TriangulationVerifier,
}
_REDACTORS: Mapping[str, Callable[..., Redactor]] = {"rules": RuleRedactor}


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
    return wire(read_settings(_named(path)), live=True).monitor


def _named(path: object) -> Path | None:
    if path is None or isinstance(path, str | Path):
        return None if path is None else Path(path)
    raise ConfigError(f"what load takes is the path of a file, not {type(path).__name__}")


def wire(
    settings: Settings,
    *,
    store: Store | Path | None = None,
    calibration: Path | Calibration | None = None,
    asks: bool = True,
    live: bool = False,
    secret: bytes | None = None,
    heard: Callable[[Model], Model] | None = None,
) -> Instrument:
    """Return the instrument of some settings; a store or calibration given here takes the place of theirs.

    Without `asks` no model is opened, and whoever asks is answered by a Failure. With `live` sessions that have open
    inquiries are held on the shelf of the settings; recordings can be read again. `secret` is that of the Monitor;
    without it one is made from the key, or anew where there is none. `heard` makes of each model that is opened the one
    that is asked.

    A store that is given open is flushed when the instrument is closed, and stays open: it is the caller's, who seals
    what is put into it where that is wanted. A plug-in that cannot be used gives a PluginWarning and is left out,
    unless the settings choose it as redactor or store.
    Raises ConfigError, CalibrationError or StoreError with the setting at fault, and MissingExtraError for the profile
    `encrypted` without the extra `sealing`.
    """
    for named, path in (("the store", store), ("the calibration", calibration)):
        _check_path(named, path if isinstance(path, Path) else None)
    with naming(settings):
        models = players(settings.panel, settings.models, Path(settings.folder), heard=heard) if asks else {}
        return _wired(settings, store, calibration, models, asks=asks, live=live, secret=secret)


def _wired(
    settings: Settings,
    store: Store | Path | None,
    calibration: Path | Calibration | None,
    models: Mapping[Role, Model],
    *,
    asks: bool,
    live: bool,
    secret: bytes | None,
) -> Instrument:
    folder = Path(settings.folder)
    _check_paths(settings, folder)
    played(settings.panel, settings.models)  # also where nobody is asked: what is wrong with it is told now
    if settings.panel.subject:
        check_asking(settings)
    key = read_key(folder / settings.store.key_file, "store.key_file") if settings.store.key_file else None
    raw = settings.store.raw_events
    if raw and key is None:
        raise ConfigError("store.raw_events needs store.key_file: own events in a recording are sealed with the key")
    sealing = _sealing(settings, key)
    kept = folder / settings.store.path if store is None and settings.store.path else store
    offered = _offered(settings, "detectors", _DETECTORS), _offered(settings, "verifiers", _VERIFIERS)
    if offered[0].pop(HijackFusion.name, None):
        leave_out(f"the detector {HijackFusion.name!r}: the name is taken by the fusion of all detectors")
    detectors, verifiers = _detectors(settings, offered[0]), _verifiers(settings, offered[1], asks=asks)
    fusions, redactor = _fusions(settings), _redactor(settings, key)
    artefact = fitted(calibration, settings, [*detectors, *fusions], verifiers, off=_off(settings))
    policy = _policy(settings, [*STARTING_MODES, *offered[0], HijackFusion.name, *offered[1]])
    build = partial(
        Monitor,
        gated(tuned(detectors, artefact), artefact),
        fusions=tuned(fusions, artefact, detectors),
        verifiers=verifiers,
        policy=policy,
        redactor=redactor,
        calibration=artefact,
        effects=settings.tools,
        panel=_panel(models, settings.panel.timeout),
        budget=settings.budget,
        shelf=_shelf(settings, folder, key) if live else None,
        secret=secret or (hmac.digest(key, b"theodolite session secret 1", "sha256") if key else None),
        recorder=Recorder(folder / raw, key) if raw and key else None,
    )
    readers = _readers(settings, key)
    # The store is opened last: what is wrong with the rest leaves no file open.
    if not isinstance(kept, Path):
        return Instrument(settings, build(store=kept), readers, kept, key)
    opened = sealing(_store(settings, kept, key))
    return Instrument(settings, build(store=opened, closing=(opened.close,)), readers, opened, key)


def _panel(models: Mapping[Role, Model], timeout: float) -> Panel | None:
    if not models:
        return None
    # The event loop takes some 80 ms to import: only those who ask models pay for it.
    from theodolite.runtime.drive import Panel  # noqa: PLC0415

    return Panel(models, timeout=timeout)


def _shelf(settings: Settings, folder: Path, key: bytes | None) -> Shelf | None:
    if not settings.store.shelf:
        return None
    if key is None:
        raise ConfigError("store.shelf needs store.key_file: sessions are held there sealed with the key")
    from theodolite.stores.sealing import SealedShelf, Sealer  # noqa: PLC0415 - only those who seal need the extra

    return SealedShelf(folder / settings.store.shelf, Sealer(key))


def _check_paths(settings: Settings, folder: Path) -> None:
    """Raise ConfigError where no file can have the name that a setting gives it."""
    for named in ("store.path", "store.key_file", "store.raw_events", "store.shelf", "calibration"):
        path: str = attrgetter(named)(settings)
        _check_path(named, folder / path if path else None)


def _check_path(named: str, path: Path | None) -> None:
    try:
        if path is not None:
            path.lstat()
    except ValueError as error:  # what Python says of a NUL, and of a lone surrogate
        raise ConfigError(f"{named} names no file that can be: a character of it stands in no name") from error
    except OSError as error:
        # Whether it is there, and may be read, is told by who opens it.
        if error.errno == errno.ENAMETOOLONG:
            raise ConfigError(f"{named} names no file that can be: the name is too long") from error


def read_key(path: Path, named: str = "--key-file") -> bytes:
    """Return the key of a file, without white space around it; `named` is what names the file.

    Raises ConfigError when it is too short or not there: without its name, for who mistakes the one for the other has
    written the key there.
    """
    try:
        key = path.read_bytes().strip()
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or "no file has such a name"
        raise ConfigError(
            f"{named}: the key file cannot be read: {why}. Give the path of a file that holds the key, and not the key "
            "itself"
        ) from error
    if len(key) < KEY_BYTES:
        raise ConfigError(
            f"the key in {path} has {len(key)} bytes, at least {KEY_BYTES} are needed: "
            "python -c 'import secrets; print(secrets.token_hex(32))'"
        )
    return key


def store_key(file: Path, key_file: Path | None) -> bytes | None:
    """Return the key of a store: of `key_file`, else of ./theodolite.toml where that names this store and a key.

    Raises ConfigError for a key, or for settings, that cannot be read.
    """
    if key_file is not None:
        return read_key(key_file)
    settings = read_settings()
    folder, kept = Path(settings.folder), settings.store
    if kept.key_file and kept.path and (folder / kept.path).resolve() == file.resolve():
        return read_key(folder / kept.key_file, "store.key_file")
    return None


def _policy(settings: Settings, known: list[str]) -> Policy:
    chosen = settings.policy
    for name in chosen.modes:
        if name not in known:
            raise ConfigError(f"policy.modes: there is no detector {brief(name)}; {nearest(name, known)}")
    return Policy(modes=chosen.modes, default=chosen.default, hold=chosen.hold, fail_closed=chosen.fail_closed)


def _offered(settings: Settings, group: str, own: Mapping[str, _F]) -> dict[str, _F]:
    """Return our own classes and those that plug-ins offer; ours keep their names."""
    if not settings.plugins:
        return dict(own)
    # Whether a plug-in is what its group says is for the check suites to show, not for a type checker here.
    return {**cast("dict[str, _F]", plugins(f"theodolite.{group}")), **own}


def _usable(what: str, make: Callable[[], _T], check: Callable[[_T], object]) -> _T | None:
    """Return what the class of a plug-in makes; None, with a warning, where that fails or does not pass the check."""
    made = _attempted(make, check)
    if isinstance(made, Failure):
        leave_out(f"{what}: {made.detail}")
        return None
    return made


def _attempted(make: Callable[[], _T], check: Callable[[_T], object]) -> _T | Failure:
    def work() -> _T:
        made = make()
        check(made)
        return made

    return attempted(work, "plug-in", "")


def _has(*names: str) -> Callable[[object], object]:
    return attrgetter(*names)


def _try_detector(detector: AnyDetector) -> None:
    _has("update", "needs")(detector)
    # Wired alone, and a session opened and closed: what else it lacks shows here.
    with Monitor([detector]).session("trial"):
        pass


def _try_verifier(verifier: Verifier) -> None:
    _has("version", "subject", "inquire")(verifier)
    Monitor(verifiers=[verifier])


def _detectors(settings: Settings, offered: Mapping[str, Callable[..., AnyDetector]]) -> list[AnyDetector]:
    known = [*offered, HijackFusion.name]
    for name in settings.detectors:
        if name not in known:
            raise ConfigError(f"detectors: there is no detector {brief(name)}; {nearest(name, known)}")
    for name in settings.detectors.keys() & _ASKING:
        # Where no model is named it is off, and nobody has said so: what is wrong with it is told now.
        if settings.detectors[name].get("enabled", True) is True:
            configured(name, _DETECTORS[name], _table(settings, name))
    made = [_detector(name, kind, settings) for name, kind in offered.items() if _enabled(name, settings)]
    return [detector for detector in made if detector is not None]


def _enabled(name: str, settings: Settings) -> bool:
    # Who would have to ask models has nothing to do where none is named.
    default = name not in _BY_REQUEST and (name not in _ASKING or bool(settings.panel.subject))
    enabled = settings.detectors.get(name, {}).get("enabled", default)
    if not isinstance(enabled, bool):
        raise ConfigError(f"detectors.{name}.enabled must be true or false, not {brief(enabled)}")
    return enabled


def _off(settings: Settings) -> set[str]:
    """Return the detectors that are switched off, the fusion where it has nothing to hear, and all who give opinions.

    An artefact may be of sessions that were probed, where nobody is asked today.
    """
    off = {name for name in (*_DETECTORS, *settings.detectors) if not _enabled(name, settings)}
    off |= _VERIFIERS.keys()
    return off | {HijackFusion.name} if HijackDetector.name in off else off


def _table(settings: Settings, name: str) -> dict[str, object]:
    return {key: value for key, value in settings.detectors.get(name, {}).items() if key != "enabled"}


def _detector(name: str, kind: Callable[..., AnyDetector], settings: Settings) -> AnyDetector | None:
    table = _table(settings, name)
    make = configured(name, kind, table)
    if name == BehaviorDetector.name:
        make = partial(given_to_ask(make, table, settings), alone=not _hears(settings))
    elif name == PayloadDetector.name:
        make = checked_by(make, table, settings)
    return make() if name in _DETECTORS else _usable(f"the detector {name!r}", make, _try_detector)


def _fusions(settings: Settings) -> list[AnyFusion]:
    """Return the fusion, which has nothing to hear without the detector that it starts from."""
    configured(HijackFusion.name, HijackFusion, _table(settings, HijackFusion.name))
    return [fused(probes=_enabled(BehaviorDetector.name, settings))] if _hears(settings) else []


def _hears(settings: Settings) -> bool:
    return _enabled(HijackDetector.name, settings) and _enabled(HijackFusion.name, settings)


def _verifiers(settings: Settings, offered: Mapping[str, Callable[..., Verifier]], *, asks: bool) -> list[Verifier]:
    made = [
        _own_verifier(name, settings, asks=asks)
        if name in _VERIFIERS
        else _usable(f"the verifier {name!r}", kind, _try_verifier)
        for name, kind in offered.items()
    ]
    return [verifier for verifier in made if verifier is not None]


def _own_verifier(name: str, settings: Settings, *, asks: bool) -> Verifier | None:
    if name == TriangulationVerifier.name:
        return TriangulationVerifier(settings.tools) if asks and _enabled(BehaviorDetector.name, settings) else None
    return _judge(settings, asks=asks)


def _judge(settings: Settings, *, asks: bool) -> Verifier | None:
    # A judge is named, and never taken for one: an agent's own model, or a small one, is a poor judge of calls.
    if not (asks and settings.panel.judge and _enabled("anomaly", settings)):
        return None
    table = settings.detectors.get("anomaly", {})
    return JudgeVerifier(task=str(table.get("task", "")), policy=str(table.get("policy", "")))


def _readers(settings: Settings, key: bytes | None) -> tuple[Reader, ...]:
    own: dict[str, Callable[[], Reader]] = {
        "theodolite-events": partial(EventLines, key),
        "openai-chat": OpenAIChat,
        "anthropic-messages": AnthropicMessages,
        "openai-responses": OpenAIResponses,
        "labelled-sessions": LabelledSessions,
        "agentdojo-runs": AgentDojoRuns,
        "inspect-logs": InspectLogs,
    }
    made = [
        kind() if name in own else _usable(f"the reader {name!r}", kind, _has("name", "detects", "read"))
        for name, kind in _offered(settings, "readers", own).items()
    ]
    return tuple([reader for reader in made if reader is not None])


def _redactor(settings: Settings, key: bytes | None) -> Redactor:
    offered, name = _offered(settings, "redactors", _REDACTORS), settings.redactor
    if name not in offered:
        raise ConfigError(f"there is no redactor {brief(name)}; {nearest(name, list(offered))}")
    profile, pseudonyms = settings.store.profile, _pseudonyms(settings, key)
    # What is sealed is scrubbed like what is not: a redactor need not know of keys.
    make = partial(offered[name], profile=Profile.STANDARD if profile is Profile.ENCRYPTED else profile)
    if name in _REDACTORS:
        return make(pseudonyms=pseudonyms)
    made = _attempted(make, _has("name", "version", "text", "field"))
    if isinstance(made, Failure):
        raise ConfigError(f"the redactor {name!r} of a plug-in cannot be used: {made.detail}. Choose another redactor.")
    # Our own keeps the profile by itself; whether another's does is not left to it.
    return CategoricalOnly(made) if profile is Profile.CATEGORICAL else made


def _pseudonyms(settings: Settings, key: bytes | None) -> Pseudonyms | None:
    if not settings.store.pseudonyms:
        return None
    if key is None:
        raise ConfigError("store.pseudonyms needs store.key_file: tags are made with a key")
    if settings.redactor not in _REDACTORS:
        raise ConfigError(f"store.pseudonyms: the redactor {brief(settings.redactor)} makes none; choose 'rules'")
    try:
        return Pseudonyms(key, length=settings.store.pseudonym_digits)
    except ConfigError as error:
        raise ConfigError(f"store.pseudonym_digits: {error}") from None


def _store(settings: Settings, path: Path, key: bytes | None) -> Store:
    own: dict[str, Callable[..., Store]] = {"sqlite": _sqlite}
    offered = _offered(settings, "stores", own)
    kind = settings.store.kind
    if kind not in offered:
        raise ConfigError(f"store.kind: there is no store {brief(kind)}; {nearest(kind, list(offered))}")
    make = partial(offered[kind], path, key=key)
    if kind in own:
        return make()
    made = _attempted(make, _has("append", "read", "head", "heads", "registry", "flush", "ready", "erase", "close"))
    if isinstance(made, Failure):
        raise StoreError(f"the store {kind!r} of a plug-in cannot be opened: {made.detail}")
    return made


def _sealing(settings: Settings, key: bytes | None) -> Callable[[Store], Store]:
    """Return what is put around the store that the settings name."""
    if settings.store.profile is not Profile.ENCRYPTED:
        return lambda store: store
    if key is None:
        raise ConfigError("store.profile = 'encrypted' needs store.key_file: payloads are sealed with the key")
    from theodolite.stores.sealing import SealedStore, Sealer  # noqa: PLC0415 - only those who seal need the extra

    return partial(SealedStore, sealer=Sealer(key))


def _sqlite(path: Path, *, key: bytes | None) -> Store:
    # SQLAlchemy takes some 150 ms to import: only those who keep anything pay for it.
    from theodolite.stores.sqlite import SQLiteStore  # noqa: PLC0415

    return SQLiteStore(path, key=key)
