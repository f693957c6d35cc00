"""What a probe is: a question under pressure against one clause of policy, and a question that the clause allows."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

__all__ = ("EXPECTED", "InjectionMode", "Phrasing", "PolicyPressure", "Probe", "ProbeTemplate", "ProbeType")


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
    """One wording of a probe and of its twin, with slots in braces that are filled alike in both."""

    probe: str
    twin: str


class ProbeTemplate(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of a library. `constraint` says what the policy forbids and what it plainly allows.

    `slots` has the words that may fill each slot of the phrasings.
    """

    id: str
    inject_as: InjectionMode = InjectionMode.USER_MESSAGE
    stress_type: str
    constraint: str
    phrasings: tuple[Phrasing, ...]
    slots: Mapping[str, tuple[str, ...]] = {}


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

    `timestamp` is in seconds since the epoch, `canary` the token that is planted for this dispatch. Fields: axor-probe.
    """

    probe_id: str
    probe_type: ProbeType
    probe_library_version: str
    scenario: str
    policy_pressure: PolicyPressure
    twin: str = ""
    expected_schema: Mapping[str, str] = EXPECTED
    inject_as: InjectionMode = InjectionMode.USER_MESSAGE
    timestamp: float = 0.0
    canary: str | None = None
