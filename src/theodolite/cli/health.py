"""What `doctor` looks at, and how it tells."""

from __future__ import annotations

import os
import platform
import re
import sqlite3
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from theodolite.cli.cautions import cautions
from theodolite.config.plugins import GROUPS, SWITCH, PluginWarning, plugins
from theodolite.config.probing import check_asking
from theodolite.config.settings import FILE, Settings, StoreSettings, naming, read_settings, trusted_tools
from theodolite.config.wiring import Instrument, wire
from theodolite.core.arguments import is_sequence
from theodolite.core.errors import TheodoliteError
from theodolite.core.intent import Effect
from theodolite.core.policy import Mode
from theodolite.core.reading import Status
from theodolite.core.redaction import Profile
from theodolite.detectors.payload.detector import PayloadDetector
from theodolite.reports.layout import Block, Heading, Paragraph, Span, Table, counted, plain
from theodolite.reports.trusted import trusting

__all__ = (
    "BandHealth",
    "ContractsHealth",
    "DetectorHealth",
    "Health",
    "PolicyHealth",
    "StoreHealth",
    "examine",
    "told",
)

PACKAGES = ("theodolite", "anyio", "jsonschema-rs", "msgspec", "phonenumbers", "pyyaml", "rich", "sqlalchemy", "typer")
# Seconds that a bare import of this package may take before something is wrong with the machine.
_IMPORT = 30


class BandHealth(Struct, frozen=True, kw_only=True):
    """The thresholds of a code, and what they rest on."""

    code: str
    alert: float
    strong: float | None
    status: Status
    acts: bool
    finds: bool
    source: str


class DetectorHealth(Struct, frozen=True, kw_only=True):
    """A detector that is on."""

    name: str
    version: str
    bands: tuple[BandHealth, ...]


class StoreHealth(Struct, frozen=True, kw_only=True):
    """What the settings say of the store. `path` is empty where nothing is kept."""

    path: str
    profile: Profile
    keyed: bool


class PolicyHealth(Struct, frozen=True, kw_only=True):
    """What the settings say of the policy.

    `tools` counts the tools whose effect the operator gave, `trusted` names those whose results nobody else writes.
    """

    default: Mode
    modes: dict[str, Mode]
    hold: bool
    fail_closed: bool
    tools: int
    trusted: tuple[str, ...]


class ContractsHealth(Struct, frozen=True, kw_only=True):
    """The contracts of the settings that calls are held against, and how many places of them are not checked."""

    files: tuple[str, ...]
    contracts: int
    gaps: int


class Health(Struct, frozen=True, kw_only=True):
    """What was found. `import_ms` is how long `import theodolite` takes in a fresh interpreter, without starting it.

    `broken` has one message for each thing that keeps the configuration from working, `warnings` one for each setting
    that cannot do what it says, `plugins` names what each group of entry points offers, `left_out` says why a plug-in
    was not loaded. An extra maps to whether all of it is there. `policy` and `store` are null where the settings cannot
    be read; without a working configuration there are no readers, no detectors and no contracts.
    """

    python: str
    platform: str
    packages: dict[str, str]
    extras: dict[str, bool]
    sqlite: str
    wal: bool
    import_ms: int
    color: bool
    config: str
    broken: tuple[str, ...]
    warnings: tuple[str, ...]
    policy: PolicyHealth | None
    calibration: str | None
    plugins: dict[str, tuple[str, ...]]
    left_out: tuple[str, ...]
    readers: tuple[str, ...]
    detectors: tuple[DetectorHealth, ...]
    contracts: ContractsHealth | None
    store: StoreHealth | None

    @property
    def well(self) -> bool:
        """Whether the configuration works."""
        return not self.broken


def examine(config: Path | None) -> Health:
    """Look at this installation, and at a settings file or ./theodolite.toml. Opens no store and makes no file."""
    broken: list[str] = []
    settings: Settings | None = None
    instrument: Instrument | None = None
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", PluginWarning)
        offered = {group: tuple(plugins(group)) for group in GROUPS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PluginWarning)
        try:
            settings = read_settings(config)
            with naming(settings):
                check_asking(settings)
            instrument = wire(replace(settings, store=replace(settings.store, path="")))
        except TheodoliteError as error:
            broken.append(str(error))
    if settings is not None and settings.store.path:
        folder = (Path(settings.folder) / settings.store.path).parent
        if not folder.is_dir():
            broken.append(f"store.path: the folder {folder} does not exist: make it, or give another path")
    fitted = instrument.monitor.fleet.calibration if instrument else None
    return Health(
        python=platform.python_version(),
        platform=platform.platform(),
        packages={name: _version(name) for name in PACKAGES},
        extras=_extras(),
        sqlite=sqlite3.sqlite_version,
        wal=_writes_ahead(),
        import_ms=_import_ms(),
        color=sys.stdout.isatty() and "NO_COLOR" not in os.environ,
        config=str(config or (FILE if Path(FILE).is_file() else "")),
        broken=tuple(broken),
        warnings=cautions(instrument) if instrument else (),
        policy=None if settings is None else _policy_of(settings),
        calibration=fitted.id if fitted else None,
        plugins=offered,
        left_out=tuple([str(warning.message) for warning in said if issubclass(warning.category, PluginWarning)]),
        readers=tuple([reader.name for reader in instrument.readers]) if instrument else (),
        detectors=tuple(_detectors(instrument)) if instrument else (),
        contracts=_contracts(instrument) if instrument else None,
        store=None if settings is None else _store_of(settings.store),
    )


def told(health: Health) -> str:
    """Return what was found, in words."""
    return "".join(plain(_blocks(health)))


def _policy_of(settings: Settings) -> PolicyHealth:
    policy = settings.policy
    known = [rule for rule in settings.tools.values() if isinstance(rule, Effect) or rule.effect is not None]
    return PolicyHealth(
        default=policy.default,
        modes=policy.modes,
        hold=policy.hold,
        fail_closed=policy.fail_closed,
        tools=len(known),
        trusted=trusted_tools(settings.tools),
    )


def _store_of(store: StoreSettings) -> StoreHealth:
    return StoreHealth(path=store.path, profile=store.profile, keyed=bool(store.key_file))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _extras() -> dict[str, bool]:
    """Return each extra of this package, and whether the packages that it asks for are installed."""
    about = metadata("theodolite")
    asked = about.get_all("Requires-Dist") or []
    extras: dict[str, bool] = {}
    for extra in about.get_all("Provides-Extra") or []:
        marker = re.compile(rf"extra == ['\"]{re.escape(extra)}['\"]")
        names = [re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in asked if marker.search(line)]
        extras[extra] = all(_version(name) != "missing" for name in names)
    return extras


def _writes_ahead() -> bool:
    """Whether SQLite can write ahead in a temporary folder, as a store must."""
    with tempfile.TemporaryDirectory() as folder, closing(sqlite3.connect(Path(folder, "wal.db"))) as connection:
        row: tuple[str] | None = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        return row == ("wal",)


def _import_ms() -> int:
    """Return how long the import takes in an interpreter that has imported nothing yet."""
    code = "import time; t = time.perf_counter(); import theodolite; print(time.perf_counter() - t)"
    done = subprocess.run(  # noqa: S603 - our own interpreter, and the code above
        (sys.executable, "-c", code), capture_output=True, text=True, check=True, timeout=_IMPORT
    )
    return round(float(done.stdout) * 1000)


def _detectors(instrument: Instrument) -> Iterator[DetectorHealth]:
    for detector in instrument.monitor.fleet.speakers:
        bands = [
            BandHealth(
                code=code,
                alert=band.alert,
                strong=band.strong,
                status=band.status,
                acts=band.acts,
                finds=band.finds,
                source=band.source,
            )
            for code, band in detector.bands.items()
        ]
        yield DetectorHealth(name=detector.name, version=detector.version, bands=tuple(bands))


def _contracts(instrument: Instrument) -> ContractsHealth | None:
    """Return what the detector of payloads was given; None where it was given nothing, or is off."""
    for detector in instrument.monitor.detectors:
        if isinstance(detector, PayloadDetector) and detector.contracts is not None:
            held = detector.contracts
            named = instrument.settings.detectors[detector.name]["contracts"]
            files = tuple([str(file) for file in named]) if is_sequence(named) else ()
            return ContractsHealth(files=files, contracts=len(held.contracts), gaps=len(held.gaps))
    return None


def _blocks(health: Health) -> Iterator[Block]:
    yield Heading((Span("This installation"),))
    yield _rows(
        ("Python", f"{health.python} on {health.platform}"),
        ("packages", ", ".join(f"{name} {number}" for name, number in health.packages.items())),
        ("extras", ", ".join(f"{name} {'yes' if there else 'no'}" for name, there in health.extras.items()) or "none"),
        ("SQLite", f"{health.sqlite}, {'writes ahead' if health.wal else 'cannot write ahead: no store can be kept'}"),
        ("import", f"{health.import_ms} ms"),
        ("color", "yes" if health.color else "no: standard output is no terminal, or NO_COLOR is set"),
    )
    yield from _settings(health)
    for message in health.warnings:
        yield Paragraph((Span(f"WARNING: {message}"),))
    for message in health.broken:
        yield Paragraph((Span(f"BROKEN: {message}"),))
    if health.readers or health.detectors:
        yield Heading((Span("Readers"),))
        yield Paragraph((Span(", ".join(health.readers) or "none"),))
        yield Heading((Span("Detectors"),))
        for detector in health.detectors:
            yield from _detector(detector)
    yield Heading((Span("Plug-ins"),))
    offered = [f"{group}: {', '.join(names)}" for group, names in health.plugins.items() if names]
    off = f"none, since {SWITCH}=0" if os.environ.get(SWITCH) == "0" else "none"
    for line in [*offered, *(f"LEFT OUT: {why}" for why in health.left_out)] or [off]:
        yield Paragraph((Span(line),))
    yield Heading((Span(_verdict(health)),))


def _settings(health: Health) -> Iterator[Block]:
    """Yield what the settings say; of settings that cannot be read only where they stand."""
    yield Heading((Span("Settings"),))
    rows = [("file", health.config or f"none: there is no {FILE} here, so the defaults hold")]
    if health.calibration or not health.broken:
        rows.append(("calibration", health.calibration or "none: shipped thresholds"))
    if health.store is not None:
        kept = f"{health.store.path or 'nothing is kept'}, profile {health.store.profile}"
        rows.append(("store", f"{kept}, {'sealed with a key' if health.store.keyed else 'without a key'}"))
    if not health.broken:
        rows.append(("contracts", _held(health.contracts)))
    yield _rows(*rows)
    if health.policy is not None:
        yield Heading((Span("Policy"),))
        yield _policy(health.policy)
        for line in trusting(health.policy.trusted):
            yield Paragraph((Span(line),))


def _held(held: ContractsHealth | None) -> str:
    if held is None:
        return "none of yours: a call is held against the schema that its session declares"
    gaps = f", {counted(held.gaps, 'place')} not checked: `theodolite guard lint` says which" if held.gaps else ""
    return f"{counted(held.contracts, 'operation')} of {counted(len(held.files), 'file')}{gaps}"


def _verdict(health: Health) -> str:
    if not health.well:
        return "The configuration is broken: see above."
    return "It works, with warnings: see above." if health.warnings or health.left_out else "All is well."


def _policy(policy: PolicyHealth) -> Table:
    modes = ", ".join(f"{name} {mode}" for name, mode in sorted(policy.modes.items()))
    return _rows(
        ("mode", f"{policy.default}{f', but {modes}' if modes else ''}"),
        ("hold", "yes: a call whose own acting signal alarms is refused" if policy.hold else "no"),
        ("fail_closed", "yes: calls are refused when an enforcing detector fails" if policy.fail_closed else "no"),
        ("tools", f"{policy.tools} with an effect"),
    )


def _detector(detector: DetectorHealth) -> Iterator[Block]:
    yield Paragraph((Span(f"{detector.name} {detector.version}"),))
    for band in detector.bands:
        strong = "" if band.strong is None else f", strong at {band.strong:g}"
        does = f"{'acts' if band.acts else 'never acts'}, {'finds' if band.finds else 'is no finding'}"
        thresholds = f"alarms at {band.alert:g}{strong}, {band.status}; {does}"
        yield Paragraph((Span(f"{band.code} {thresholds}; {band.source}"),), indent=4)


def _rows(*rows: tuple[str, str]) -> Table:
    return Table(("", ""), tuple([(Span(name), Span(value)) for name, value in rows]))
