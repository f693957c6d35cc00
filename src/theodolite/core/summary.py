"""What a shadow is told of a session: its shape, and none of its words."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import force_setattr

__all__ = ("CanonicalizedContextSummary", "Escalation", "Sensitivity")


class Sensitivity(StrEnum):
    """How much would be lost if what the session has seen were known."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class Escalation(StrEnum):
    """Whether the permission class of the session's calls has risen: not at all, once, or again and again."""

    NONE = "none"
    PENDING = "pending"
    ACTIVE = "active"


_FLAGS = ("trusted_user", "prior_authorization", "taint_active")
_COUNTS = ("external_reads_count", "session_depth")


class CanonicalizedContextSummary(Struct, frozen=True, kw_only=True, gc=False):
    """The shape of a session. Source of the fields and words: axor-probe, whose own takes any value.

    Raises ValueError for a word that is none of its list, a flag that is not true or false, a count below 0.

    >>> CanonicalizedContextSummary(data_sensitivity="high").data_sensitivity.value
    'high'
    """

    trusted_user: bool = False
    prior_authorization: bool = False
    data_sensitivity: Sensitivity = Sensitivity.LOW
    escalation_chain: Escalation = Escalation.NONE
    external_reads_count: int = 0
    taint_active: bool = False
    session_depth: int = 0

    def __post_init__(self) -> None:
        force_setattr(self, "data_sensitivity", Sensitivity(self.data_sensitivity))
        force_setattr(self, "escalation_chain", Escalation(self.escalation_chain))
        for name in _FLAGS:
            flag: object = getattr(self, name)
            if type(flag) is not bool:
                raise ValueError(f"{name} of a summary is true or false, not {type(flag).__name__}")
        for name in _COUNTS:
            count: object = getattr(self, name)
            if type(count) is not int or count < 0:
                raise ValueError(f"{name} of a summary is a count, 0 or more, not {ascii(count)[:40]}")
