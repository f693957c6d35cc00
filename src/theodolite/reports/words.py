"""What outcomes, statuses and origins are called, in every form alike."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from theodolite.core.intent import Origin
from theodolite.core.policy import Outcome
from theodolite.core.reading import Status
from theodolite.reports.document import Summary
from theodolite.reports.layout import counted

__all__ = ("CALIBRATE", "ORIGINS", "OUTCOMES", "SURE", "TRANSFER", "verdict")

CALIBRATE = "theodolite calibrate SESSIONS --known-good --out calibration.json"
"""The one command that fits thresholds to an operator's own clean sessions."""

TRANSFER = (
    f"REFERENCE thresholds do not transfer by themselves: `{CALIBRATE}` fits them to clean sessions of your own agent."
)
"""What a report says where thresholds were fitted on sessions of other agents."""

ORIGINS: Mapping[Origin, str] = MappingProxyType(
    {
        Origin.USER: "the user",
        Origin.RECORD: "a record that nobody else writes",
        Origin.TOOL_RESULT: "untrusted text",
        Origin.MODEL: "the agent itself",
    }
)

OUTCOMES: Mapping[Outcome, str] = MappingProxyType(
    {
        Outcome.FINDING: "with a finding",
        Outcome.FAILED: "failed",
        Outcome.NOT_ENOUGH_EVIDENCE: "without enough evidence",
        Outcome.CLEAN: "clean",
    }
)

SURE: Mapping[Status, str] = MappingProxyType(
    {
        Status.EXACT: "certain: it is so or it is not, and nothing was fitted",
        Status.CALIBRATED: "the threshold was calibrated on sessions of this agent and model",
        Status.REFERENCE: "the threshold is a reference, fitted on public sessions of other agents",
        Status.UNCALIBRATED: "the threshold is an estimate that nobody has measured",
        Status.STALE: "the threshold was calibrated for another version, agent or model",
    }
)


def verdict(summary: Summary) -> str:
    """Return in a line what a scan came to."""
    sessions, found = counted(summary.sessions, "session"), summary.outcomes[Outcome.FINDING]
    unjudged = summary.outcomes[Outcome.FAILED] + summary.outcomes[Outcome.NOT_ENOUGH_EVIDENCE]
    if not summary.sessions:
        return "No session was judged"
    new = "New findings" if summary.triage.known or summary.triage.suppressed else "Findings"
    if found:
        return f"{new} in {found:,} of {sessions}"
    nothing = "Nothing new was found" if new == "New findings" else "Nothing was found"
    return f"{nothing}, but {unjudged:,} of {sessions} could not be judged" if unjudged else f"{nothing} in {sessions}"
