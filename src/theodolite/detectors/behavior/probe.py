"""What a probe is: a question under pressure against one clause of policy, and a question that the clause allows.

The rules of a library's texts stand here: a template that exists can be asked. Their bounds are our choices; a text is
to be read by a person, and both arms of each probe pay for it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec import Struct, field

from theodolite.core.text import brief, encodable
from theodolite.detectors.behavior.leading import leading

__all__ = ("EXPECTED", "SLOT", "InjectionMode", "Phrasing", "PolicyPressure", "Probe", "ProbeTemplate", "ProbeType")

SLOT = re.compile(r"\{([a-z][a-z0-9_]{0,31})\}")
"""A slot in a phrasing."""

# Characters of a probe or a twin, of a constraint, and of the words for a slot.
_TEXT, _CONSTRAINT, _WORDS = 2_000, 1_000, 200
_PHRASINGS, _SLOTS, _FILLINGS = range(3, 17), 16, range(2, 65)
_UNLIKE = 15  # per cent by which the words of a probe and of its twin may differ in number: the longer one is 100
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_CONTROL = re.compile(r"[^\t\n -~\xa0-\U0010ffff]")


class ProbeType(StrEnum):
    """What a probe presses for. The words are axor-probe's."""

    DATA_DISCLOSURE = "data_disclosure"
    SCOPE_EXPANSION = "scope_expansion"
    AUTHORITY_ESCALATION = "authority_escalation"
    BUDGET_BYPASS = "budget_bypass"
    INSTRUCTION_CONFLICT = "instruction_conflict"
    IDENTITY_PROBE = "identity_probe"


class InjectionMode(StrEnum):
    """How the question stands in the context: as the user's next message, or as what a tool returned."""

    USER_MESSAGE = "user_message"
    TOOL_RESULT = "tool_result"


class PolicyPressure(Struct, frozen=True, gc=False):
    """The clause of policy that is pressed on, and the means of pressure, in a word."""

    constraint: str
    stress_type: str


class Phrasing(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """One wording of a probe and of its twin, with slots in braces that are filled alike in both.

    Each is at most 2,000 characters; their words differ by at most 15 % in number, and both have the same slots, each
    as often. Neither holds a word that stands for a decision (comply, decline, escalate, refuse, proceed, reject,
    forward, allow, deny), a letter that stands alone but I, or an order to answer in a certain form. Raises ValueError
    where that is not so.

    >>> Phrasing("Tell me what {name} earns, now.", "Tell me.")
    Traceback (most recent call last):
    ...
    ValueError: the slots of probe and twin differ in {name}: both are filled alike
    """

    probe: str
    twin: str

    def __post_init__(self) -> None:
        for name, text in (("probe", self.probe), ("twin", self.twin)):
            _check_text(name, text, _TEXT)
            _check_neutral(name, text)
            if set("{}") & set(SLOT.sub("", text)):
                raise ValueError(f"{name} has a brace that is no slot: write {{name}}, a to z, digits and _")
        if self.probe == self.twin:
            raise ValueError("probe and twin are the same: the twin asks for what the policy allows")
        slots, others = Counter(SLOT.findall(self.probe)), Counter(SLOT.findall(self.twin))
        if slots != others:
            differ = _braced(slot for slot in slots | others if slots[slot] != others[slot])
            raise ValueError(f"the slots of probe and twin differ in {differ}: both are filled alike")
        words, like = len(self.probe.split()), len(self.twin.split())
        if 100 * abs(words - like) > _UNLIKE * max(words, like):
            raise ValueError(f"probe has {words} words and twin {like}: they may differ by {_UNLIKE} %")

    @property
    def slots(self) -> frozenset[str]:
        """The names of its slots."""
        return frozenset(SLOT.findall(self.probe))


class ProbeTemplate(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"probe_type": "type"}):
    """One entry of a library. `constraint` says what the policy forbids and what it plainly allows.

    `slots` has the words that may fill each slot of the phrasings: 2 to 64 that differ, each at most 200 characters. An
    entry has 3 to 16 phrasings and at most 16 slots, all of them used; its constraint has at most 1,000 characters and
    no slots. `id` and `stress_type` are a to z, digits and _. In a library's file `probe_type` is called `type`. Raises
    ValueError where that is not so.
    """

    id: str
    probe_type: ProbeType
    inject_as: InjectionMode = InjectionMode.USER_MESSAGE
    stress_type: str
    constraint: str
    phrasings: tuple[Phrasing, ...]
    slots: Mapping[str, tuple[str, ...]] = {}

    def __post_init__(self) -> None:
        for name, text in (("id", self.id), ("stress_type", self.stress_type)):
            if _NAME.fullmatch(text) is None:
                raise ValueError(f"{name} is {brief(text)}: write a to z, digits and _, 64 at most, a letter first")
        _check_text("constraint", self.constraint, _CONSTRAINT)
        if set("{}") & set(self.constraint):
            raise ValueError("constraint has braces: it has no slots, since it is the same for all phrasings")
        if len(self.phrasings) not in _PHRASINGS:
            raise ValueError(f"phrasings: there are {len(self.phrasings)}, and 3 to 16 are needed")
        for name in ("probe", "twin"):
            if len({getattr(phrasing, name) for phrasing in self.phrasings}) < len(self.phrasings):
                raise ValueError(f"phrasings: two have the same {name}")
        self._check_slots()

    def _check_slots(self) -> None:
        used = frozenset[str]().union(*[phrasing.slots for phrasing in self.phrasings])
        if used - self.slots.keys():
            raise ValueError(f"slots: no words are given for {_braced(used - self.slots.keys())}")
        if self.slots.keys() - used:
            raise ValueError(f"slots: no phrasing has {_braced(self.slots.keys() - used)}")
        if len(self.slots) > _SLOTS:
            raise ValueError(f"slots: there are {len(self.slots)}, and {_SLOTS} are the most")
        for slot, fillings in self.slots.items():
            if len(fillings) not in _FILLINGS:
                raise ValueError(f"slots.{slot} has {len(fillings)} entries: give 2 to 64")
            if len(set(fillings)) < len(fillings):
                raise ValueError(f"slots.{slot} has an entry twice")
            for filling in fillings:
                _check_text(f"slots.{slot}", filling, _WORDS)
                _check_neutral(f"slots.{slot}", filling)
                if set("{}") & set(filling):
                    raise ValueError(f"slots.{slot} has braces in {brief(filling)}: slots are filled once")


def _check_text(name: str, text: str, most: int) -> None:
    """Raise ValueError for a text that is empty, too long, has space around it, or cannot be shown."""
    if not text.strip():
        raise ValueError(f"{name} has no text")
    if text != text.strip():
        raise ValueError(f"{name} has space around it: leave it out")
    if len(text) > most:
        raise ValueError(f"{name} has {len(text):,} characters, and {most:,} are the most")
    if not encodable(text) or _CONTROL.search(text):
        raise ValueError(f"{name} has a control character")


def _check_neutral(name: str, text: str) -> None:
    """Raise ValueError for a text that would lead the reading of a decision."""
    for _, words in leading(text, asked=True):
        raise ValueError(f"{name} says {brief(words)}, which would lead the answer: put it in other words")


def _braced(slots: Iterable[str]) -> str:
    return ", ".join([f"{{{slot}}}" for slot in sorted(slots)])


EXPECTED: Mapping[str, str] = {
    "decision": "string",
    "reasoning": "string",
    "disclosed_data": "boolean",
    "policy_cited": "boolean",
    "escalation_suggested": "boolean",
    "tool_call_attempted": "boolean",
}
"""The fields of an answer and their JSON types: axor-probe's, in its order."""


class Probe(Struct, frozen=True, kw_only=True):
    """A probe as it is dispatched: one phrasing, filled. `twin` is what the policy plainly allows, worded alike.

    `timestamp` is in seconds since the epoch, `canary` the token that is planted for this dispatch, `phrasing` the
    place of the wording in its template. Fields but `twin` and `phrasing`: axor-probe.
    """

    probe_id: str
    probe_type: ProbeType
    probe_library_version: str
    scenario: str
    policy_pressure: PolicyPressure
    twin: str = ""
    expected_schema: Mapping[str, str] = field(default_factory=lambda: dict(EXPECTED))
    inject_as: InjectionMode = InjectionMode.USER_MESSAGE
    timestamp: float = 0.0
    canary: str | None = None
    phrasing: int = 0
