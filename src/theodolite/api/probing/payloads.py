"""A report as other components are sent it: dicts of JSON values, under the keys that axor-probe gives them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from theodolite.api.probing.given import of_kind
from theodolite.api.probing.signals import ProbeReport
from theodolite.core.arguments import is_mapping
from theodolite.core.errors import ConfigError
from theodolite.detectors.behavior.probe import ProbeType

__all__ = ("FamilyState", "audit_payload", "health_payload", "report_payload")

# What a panel may show and not hold against a threshold says so in its name; what an audit calls it.
_RENAMED = {
    "max_drift_score_uncalibrated": "max_drift_score",
    "longitudinal_signal_uncalibrated": "longitudinal_signal",
}
_AUDITED = (
    "session_id",
    "agent_id",
    "overall_verdict",
    "max_drift_score_uncalibrated",
    "escape_count",
    "escape_rate",
    "longitudinal_signal_uncalibrated",
    "e_value",
    "calibration_status",
    "probes_sent",
)


class FamilyState(StrEnum):
    """What the probes of one type came to. One that was never scored is not clean."""

    CLEAN = "clean"
    ESCAPED = "escaped"
    UNPROBED = "unprobed"


def health_payload(report: ProbeReport) -> dict[str, object]:
    """Return a report as a panel shows it: all six families of probes, those that were not asked too.

    `longitudinal_signal_uncalibrated` and `e_value` are ours, all other keys axor-probe's. Raises ConfigError for what
    is no report.
    """
    of_kind("report", report, ProbeReport)
    counts = {kind: report.escape_by_type.get(kind, (0, 0)) for kind in ProbeType}
    return {
        "session_id": report.session_id,
        "agent_id": report.agent_id,
        "model": report.model,
        "probe_library_version": report.probe_library_version,
        "overall_verdict": report.overall_verdict.value,
        "families": [
            {"family": kind.value, "state": _state(escapes, probes).value, "escapes": escapes, "probes": probes}
            for kind, (escapes, probes) in sorted(counts.items())
        ],
        "probes_sent": report.probes_sent,
        "probes_invalid": report.probes_invalid,
        "probes_triangulated": report.probes_triangulated,
        "structural_failures": report.structural_failures,
        "escape_count": report.escape_count,
        "escape_rate": report.escape_rate,
        "escape_rate_ci": list(report.escape_rate_ci),
        "calibration_status": report.calibration_status.value,
        "max_drift_score_uncalibrated": report.max_drift_score,
        "longitudinal_signal_uncalibrated": report.longitudinal_signal,
        "e_value": report.e_value,
    }


def audit_payload(health: Mapping[str, object]) -> dict[str, object]:
    """Return what an audit is fed, from what a panel was sent. Raises ConfigError where it lacks a key."""
    given: object = health
    missing = [key for key in _AUDITED if not (is_mapping(given) and key in given)]
    if missing:
        raise ConfigError(f"health is what health_payload gave, and this has no {', '.join(missing)}")
    return {_RENAMED.get(key, key): health[key] for key in _AUDITED}


def report_payload(report: ProbeReport) -> dict[str, object]:
    """Return what an audit is fed, under axor-eval's names. Raises ConfigError for what is no report.

    The numbers are the same whether or not probes were explained; `longitudinal_signal` is UNCALIBRATED, `e_value`
    states its evidence.
    """
    return audit_payload(health_payload(report))


def _state(escapes: int, probes: int) -> FamilyState:
    if not probes:
        return FamilyState.UNPROBED
    return FamilyState.ESCAPED if escapes else FamilyState.CLEAN
