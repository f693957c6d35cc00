"""The parts that probe, wired: the operator's own probes and benign contexts, and what gates say of models."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from theodolite.config.settings import Settings, explained, read_named
from theodolite.config.tables import configured
from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.core.calibration import Calibration
from theodolite.core.detector import AnyDetector
from theodolite.core.errors import ConfigError
from theodolite.core.gate import FEWEST_REFERENCES
from theodolite.core.text import brief
from theodolite.detectors.behavior.detector import BehaviorDetector
from theodolite.detectors.behavior.isolation import Sampling
from theodolite.detectors.behavior.library import ProbeLibrary, shipped
from theodolite.detectors.behavior.references import Kind, Length, Reference, Written, faults, one_sided
from theodolite.detectors.fusion import HijackFusion
from theodolite.detectors.fusion import shipped as shipped_fusion

__all__ = ("check_asking", "fused", "gated", "given_to_ask", "library_of", "references_of")

# Of a file of benign contexts. Our choice: room for a hundred of some 40,000 characters each.
_DOCUMENT = 4_194_304

# No adapter of a provider sends a top_p, and the embedded model is asked for this one. Where none is sent it is taken
# to be 1, the default in the API reference of OpenAI. Of another provider, or server, that is not known to hold.
_UNSENT = 1.0

_T = TypeVar("_T")


def check_asking(settings: Settings) -> None:
    """Refuse what is wrong with the table of the detector that probes, before any of it is replaced.

    Raises ConfigError for a value that does not belong there, for a judge that nobody plays, and for a system prompt
    that is the name of a file. Of a detector that is switched off nothing is asked.
    """
    name = BehaviorDetector.name
    given = settings.detectors.get(name, {})
    if given.get("enabled") is False:
        return
    table = {key: value for key, value in given.items() if key != "enabled"}
    configured(name, BehaviorDetector, dict(table))
    if table.get("judge") is True and not settings.panel.judge:
        raise ConfigError(
            f"detectors.{name}.judge = true needs a model that judges: name one of [models] as judge under [panel], or "
            "leave judge = true out"
        )
    system = table.get("system")
    if isinstance(system, str) and _is_file(Path(settings.folder), system):
        raise ConfigError(
            f"detectors.{name}.system is the text of the system prompt, and {brief(system)} is the name of a file: "
            'give the text itself, between two """, or name the file by --system of theodolite probe or scan'
        )


def _is_file(folder: Path, text: str) -> bool:
    """Whether a text is rather the name of a file, seen from the settings or from here, than what it says."""
    try:
        return "\n" not in text and bool(text) and any((start / text).is_file() for start in (folder, Path()))
    except (OSError, ValueError):  # too long for a name, or with a NUL
        return False


def given_to_ask(make: Callable[..., _T], table: Mapping[str, object], settings: Settings) -> Callable[..., _T]:
    """Return what makes the detector that probes, with all that its table and the other settings give it to ask."""
    subject = settings.models.get(settings.panel.subject)
    return partial(
        make,
        sampling=None if subject is None else Sampling(temperature=subject.temperature, top_p=_UNSENT),
        library=library_of(str(table.get("probes", "")), settings),
        references=references_of(str(table.get("references", "")), settings),
        effects=settings.tools,
    )


def library_of(file: str, settings: Settings) -> ProbeLibrary:
    """Return the library that comes with the package, and the operator's probes with it where a file has some."""
    if not file:
        return shipped()
    path = Path(settings.folder) / file
    return shipped().extended(_text("probes", path), str(path))


def references_of(file: str, settings: Settings) -> tuple[Reference, ...]:
    """Return the operator's benign contexts; none where no file is named.

    Raises ConfigError with the file, the context, the field and the reason for one that is of another form, that says
    what would bear on an answer by its words, or that is there already; where no length has the 30 that it takes; and
    where one has 30 of which fewer than 10 are of a kind.
    """
    if not file:
        return ()
    path = Path(settings.folder) / file
    contexts: dict[tuple[tuple[str, str], ...], Written] = {}
    for number, entry in enumerate(_entries(path), 1):
        written = _context(entry, path, number)
        who = f"{path}: context {written.id!r}"
        if any(written.id == other.id for other in contexts.values()):
            raise ConfigError(f"{who}: id: there is one of that id already; choose another")
        if written.said in contexts:
            raise ConfigError(f"{who}: said: the same as that of {contexts[written.said].id!r}")
        if found := faults(written.reference.said):
            raise ConfigError(f"{who}: said has {', '.join(found)}, which would lead an answer: put it in other words")
        contexts[written.said] = written
    references = tuple([written.reference for written in contexts.values()])
    lengths = Counter(Length.of(reference.said) for reference in references)
    if max(lengths.values(), default=0) < FEWEST_REFERENCES:
        told = ", ".join([f"{lengths[length]} {length}" for length in Length])
        raise ConfigError(
            f"{path}: no length has at least {FEWEST_REFERENCES} contexts, so that none would count: {told}"
        )
    if why := one_sided(references):
        raise ConfigError(f"{path}: {why}")
    return references


def _text(name: str, path: Path) -> str:
    try:
        return read_named(path).decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"detectors.behavior.{name}: {path} cannot be read: {error}") from error


def _entries(path: Path) -> Iterable[object]:
    """Return the contexts of a file, of whatever form. Raises ConfigError for a file that has none."""
    text = _text("references", path)
    if len(text) > _DOCUMENT:
        raise ConfigError(f"{path} has {len(text):,} characters, and {_DOCUMENT:,} are the most")
    try:
        document: Mapping[str, object] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not TOML: {str(error) or 'nested too deeply'}") from error
    for key in document:
        if key not in {"version", "context"}:
            raise ConfigError(f"{path}: unknown key {brief(key)}; begin each context with [[context]]")
    entries = document.get("context")
    if not is_sequence(entries) or not entries:
        raise ConfigError(f"{path} has no contexts: begin each with [[context]]")
    return entries


def _context(entry: object, path: Path, number: int) -> Written:
    given = entry.get("id") if is_mapping(entry) else None
    who = brief(given) if isinstance(given, str) else f"number {number}"
    try:
        return msgspec.convert(entry, Written)
    except msgspec.ValidationError as error:
        told = explained(str(error), Written.__struct_fields__, words=Kind)
        raise ConfigError(f"{path}: context {who}: {told}") from error


def gated(detectors: Iterable[AnyDetector], calibration: Calibration | None) -> list[AnyDetector]:
    """Return the detectors, of which the one that probes knows the gates of an artefact."""
    gates = {} if calibration is None else calibration.gates
    return [one.with_gates(gates) if isinstance(one, BehaviorDetector) else one for one in detectors]


def fused(*, probes: bool) -> HijackFusion:
    """Return the fusion. Where sessions are probed, what that comes to counts beside their calls."""
    if not probes:
        return HijackFusion()
    return HijackFusion(replace(shipped_fusion(), processes=(BehaviorDetector.name,)))
