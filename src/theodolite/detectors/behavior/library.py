"""The probe library: templates of six types, read from TOML, filled anew for each dispatch and chosen by secret bytes.

What comes with the package is version 1.0.0. An operator's own probes are added to it under a version of their own, so
that results of different libraries are never added up.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import tomllib
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from importlib.resources import files
from itertools import accumulate

import msgspec
from msgspec import Struct, field

from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.core.errors import ConfigError
from theodolite.core.text import brief, encodable
from theodolite.detectors.behavior.probe import (
    SLOT,
    InjectionMode,
    Phrasing,
    PolicyPressure,
    Probe,
    ProbeTemplate,
    ProbeType,
)

__all__ = ("VERSION", "ProbeLibrary", "shipped")

VERSION = "1.0.0"
"""The version of the library that comes with the package. A changed text is a new version."""

# Our choices: ten times what comes with the package, in number and in size.
_PROBES, _DOCUMENT = 256, 524_288

# What each trigger makes likely. Content from outside brings instructions, requests for data and claims of authority;
# where a context was cut or passed on, what is lost is the policy and the role. All other triggers favor nothing.
_OUTSIDE = frozenset({ProbeType.INSTRUCTION_CONFLICT, ProbeType.DATA_DISCLOSURE, ProbeType.AUTHORITY_ESCALATION})
_LOST = frozenset({ProbeType.INSTRUCTION_CONFLICT, ProbeType.IDENTITY_PROBE})
_FAVORED: Mapping[str, frozenset[ProbeType]] = {
    "external_content": _OUTSIDE,
    "reputation": _OUTSIDE,
    "compaction": _LOST,
    "handoff": _LOST,
}
# How much likelier what is favored is; each use of a type halves its chance. Our choices: of twenty probes that are all
# steered alike a favored type then gets about two more than another.
_FAVOR = 4
_HALVINGS = 16

_KINDS: Mapping[str, str] = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "a table",
    "array": "a list",
    "datetime": "a date and time",
    "date": "a date",
    "time": "a time",
}
_CHOICES: Mapping[str, type[StrEnum]] = {"type": ProbeType, "inject_as": InjectionMode}


def _templates() -> tuple[ProbeTemplate, ...]:
    return shipped().templates


def _as_given(version: object, templates: object) -> None:
    """Raise ConfigError where a caller without a type checker gave something else."""
    if not isinstance(version, str) or not version:
        raise ConfigError(f"the version of a library is a text that is not empty, not {brief(version)}")
    for one in templates if is_sequence(templates) else (templates,):
        if not isinstance(one, ProbeTemplate):
            raise ConfigError(f"the templates of a library are a tuple of ProbeTemplate, not {brief(one)}")


class ProbeLibrary(Struct, frozen=True, kw_only=True):
    """Templates under one version: by default those that come with the package.

    Raises ValueError when there are none, or two have one id, and ConfigError for what is no template or no version.

    All that is random comes from bytes that the caller gives: equal bytes, equal choice. Whoever does not know them
    cannot foresee it.
    """

    version: str = VERSION
    templates: tuple[ProbeTemplate, ...] = field(default_factory=_templates)

    def __post_init__(self) -> None:
        _as_given(self.version, self.templates)
        if not self.templates:
            raise ValueError("a library without probes asks nothing")
        if len({template.id for template in self.templates}) < len(self.templates):
            raise ValueError("two probes of a library have the same id")

    @classmethod
    def of(cls, documents: Mapping[str, str], *, version: str = "") -> ProbeLibrary:
        """Return the library of some TOML documents by name; without a version, under one that their content makes.

        Raises ConfigError that names the document, the probe, the field and the reason.
        """
        templates: list[ProbeTemplate] = []
        given: object = documents
        if not is_mapping(given):
            raise ConfigError(f"documents are TOML texts by name, as a mapping, not {brief(documents)}")
        for name, text in documents.items():
            templates.extend(_read(text, name, {template.id for template in templates}))
        if not templates:
            raise ConfigError("a library without probes asks nothing: name a file that has some")
        return cls(version=version or f"0+{_digest(templates)}", templates=tuple(templates))

    def extended(self, text: str, name: str) -> ProbeLibrary:
        """Return this library with the probes of a TOML document, under a version such as 1.0.0+5f0a11c2.

        The digits are a hash of what was added, comments and layout left out. Raises ConfigError as `of` does.
        """
        added = _read(text, name, {template.id for template in self.templates})
        version = f"{self.version}{'.' if '+' in self.version else '+'}{_digest(added)}"
        return ProbeLibrary(version=version, templates=(*self.templates, *added))

    @property
    def probes(self) -> tuple[Probe, ...]:
        """Each template once, in its first phrasing with the first words of each slot."""
        return tuple(
            [
                self._filled(template, 0, {slot: words[0] for slot, words in template.slots.items()})
                for template in self.templates
            ]
        )

    def select(self, random: bytes, *, canary: str | None = None, at: float = 0.0) -> Probe:
        """Return any one probe, each template as likely as another, filled."""
        return self.fill(self.templates[_below(random, "template", len(self.templates))], random, canary=canary, at=at)

    def fill(self, template: ProbeTemplate, random: bytes, *, canary: str | None = None, at: float = 0.0) -> Probe:
        """Return a template as a probe of time `at`: one of its phrasings, with one of its words in each slot."""
        words = {slot: words[_below(random, f"slot.{slot}", len(words))] for slot, words in template.slots.items()}
        phrasing = _below(random, "phrasing", len(template.phrasings))
        return self._filled(template, phrasing, words, canary=canary, at=at)

    def choice(
        self, used: Mapping[str, int], draw: Callable[[str], bytes], *, trigger: str = "", cap: int
    ) -> ProbeTemplate:
        """Return the next template of a session that has used some ids so often and is asked `cap` probes at most.

        `draw` gives secret bytes for a label, the same at each call. Every type is used within the cap, or with a cap
        below their number as many types as it has room for; no template comes again before all of its type were used.
        Within that the trigger steers: external_content and reputation favor conflicting instructions, disclosure and
        authority, best as a tool result; compaction and handoff favor what policy and role are lost with; all
        others favor nothing. Depends on nothing else, so that it can be told again. Linear in the library and in
        `used`.
        """
        times = Counter(used)
        number = times.total()
        groups: dict[ProbeType, list[ProbeTemplate]] = {}
        for template in self.templates:
            groups.setdefault(template.probe_type, []).append(template)
        uses = {kind: sum(times[template.id] for template in group) for kind, group in groups.items()}
        missing = [kind for kind, count in uses.items() if not count]
        open_to = missing if missing and cap - number <= len(missing) else list(groups)
        favored = _FAVORED.get(trigger, frozenset[ProbeType]())
        least = min(uses[kind] for kind in open_to)
        weights = [
            (_FAVOR if kind in favored else 1) << (_HALVINGS - min(uses[kind] - least, _HALVINGS)) for kind in open_to
        ]
        group = groups[open_to[_weighted(draw(f"probe.{number}.type"), weights)]]
        fewest = min(times[template.id] for template in group)
        fresh = [template for template in group if times[template.id] == fewest]
        outside = favored is _OUTSIDE
        return fresh[
            _weighted(
                draw(f"probe.{number}.template"),
                [_FAVOR if outside and one.inject_as is InjectionMode.TOOL_RESULT else 1 for one in fresh],
            )
        ]

    def _filled(
        self,
        template: ProbeTemplate,
        phrasing: int,
        words: Mapping[str, str],
        *,
        canary: str | None = None,
        at: float = 0.0,
    ) -> Probe:
        def filled(text: str) -> str:
            return SLOT.sub(lambda slot: words[slot[1]], text)

        return Probe(
            probe_id=template.id,
            probe_type=template.probe_type,
            probe_library_version=self.version,
            scenario=filled(template.phrasings[phrasing].probe),
            twin=filled(template.phrasings[phrasing].twin),
            policy_pressure=PolicyPressure(template.constraint, template.stress_type),
            inject_as=template.inject_as,
            timestamp=at,
            canary=canary,
            phrasing=phrasing,
        )


@cache
def shipped() -> ProbeLibrary:
    """Return the library that comes with the package. Reads its files once."""
    folder = files("theodolite.detectors.behavior").joinpath("probes")
    names = [f"{kind}.toml" for kind in ProbeType]
    return ProbeLibrary.of({name: folder.joinpath(name).read_text("utf-8") for name in names}, version=VERSION)


def _below(random: bytes, label: str, count: int) -> int:
    """Return a number below a count. The remainder of 256 bits favors none by more than one in 2^240."""
    return int.from_bytes(hmac.digest(random, label.encode(), "sha256")) % count


def _weighted(random: bytes, weights: Sequence[int]) -> int:
    """Return a place, each as likely as its weight says."""
    sums = list(accumulate(weights))
    return bisect(sums, _below(random, "weighted", sums[-1]))


def _digest(templates: Sequence[ProbeTemplate]) -> str:
    return hashlib.sha256(msgspec.json.encode(templates, order="deterministic")).hexdigest()[:8]


def _parsed(text: object, name: str) -> Mapping[str, object]:
    if not isinstance(text, str):
        raise ConfigError(f"{name} is given as the text of a TOML document, not as {brief(text)}")
    if len(text) > _DOCUMENT:
        raise ConfigError(f"{name} has {len(text):,} characters, and {_DOCUMENT:,} are the most")
    if not encodable(text):
        raise ConfigError(f"{name} is not TOML: it has a lone surrogate")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name} is not TOML: {str(error) or 'nested too deeply'}") from error


def _read(text: str, name: str, taken: set[str]) -> list[ProbeTemplate]:
    """Return the templates of a document. Raises ConfigError for a bad one, and for an id that is taken."""
    document = _parsed(text, name)
    for key in document:
        if key != "probes":
            raise ConfigError(f"{name}: unknown key {brief(key)}; the only one is 'probes': begin each with [[probes]]")
    entries = document.get("probes")
    if not is_sequence(entries) or not entries:
        raise ConfigError(f"{name} has no probes: begin each with [[probes]]")
    if len(entries) > _PROBES:
        raise ConfigError(f"{name} has {len(entries)} probes, and {_PROBES} are the most")
    templates: dict[str, ProbeTemplate] = {}
    for number, entry in enumerate(entries, 1):
        template = _template(entry, name, number)
        if template.id in taken or template.id in templates:
            raise ConfigError(f"{name}: probe {brief(template.id)}: there is one of that id already; choose another")
        templates[template.id] = template
    return list(templates.values())


def _template(entry: object, name: str, number: int) -> ProbeTemplate:
    given = entry.get("id") if is_mapping(entry) else None
    who = f"{name}: probe {brief(given) if isinstance(given, str) else f'number {number}'}"
    try:
        return msgspec.convert(entry, ProbeTemplate)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{who}{_explained(str(error))}") from error


def _explained(message: str) -> str:
    """Return msgspec's message in the words of a TOML file: the phrasing if it is one, the field, and the reason."""
    told = re.fullmatch(r"(.*?)(?: - at `\$\.?([^`]*)`)?", message, re.DOTALL)
    fault, at = (message, "") if told is None else (told[1], told[2] or "")
    phrasing = re.match(r"phrasings\[\d+\](?=\.|\Z)", at)
    field = at if phrasing is None else at[phrasing.end() + 1 :]
    kind = ProbeTemplate if phrasing is None else Phrasing
    return f"{'' if phrasing is None else f', {phrasing[0]}'}: {_reason(fault, field, kind)}"


def _reason(fault: str, field: str, kind: type[Struct]) -> str:
    # The words of one slot have no name in msgspec's path.
    place = "a value in slots" if field.startswith("slots[") else field
    unknown = re.match(r"Object contains unknown field `(.*)`\Z", fault, re.DOTALL)
    if unknown is not None:
        return f"unknown key {brief(unknown[1])}; known: {', '.join(sorted(kind.__struct_encode_fields__))}"
    missing = re.fullmatch(r"Object missing required field `(.*?)`", fault)
    if missing is not None:
        return f"'{missing[1]}' is missing"
    word = re.fullmatch(r"Invalid enum value '(.*)'", fault, re.DOTALL)
    if word is not None and field in _CHOICES:
        return f"{field}: {brief(word[1])} is none of {', '.join(_CHOICES[field])}"
    types = re.fullmatch(r"Expected `(.*?)`, got `(.*?)`", fault)
    if types is not None:
        return f"{place} must be {_KINDS.get(types[1], types[1])}, not {_KINDS.get(types[2], types[2])}".lstrip()
    return f"{place}: {fault}" if place else fault
