"""The page about the names of axor-probe: it has each of them, and what it says is there is there."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

from theodolite.api import probing

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "seed-names.md").read_text(encoding="utf-8")

# Public names of axor-probe: of the design that its README describes, 0.1.0 and 0.2.1.
_NAMES = """
AuditFeedFn BASE_FIELD_WEIGHTS CONSISTENCY_ANOMALY_THRESHOLD CalibrationPipeline CalibrationResult
CanonicalizedContextSummary Comparator ComparatorConfig ComparisonMode ComparisonResult ContextlessShadowBaseline
CoreContextTap CoreDriftSink DRIFT_THRESHOLDS DefaultComparator DefaultShadowInstanceFactory DivergenceCategory
DriftAccumulator DriftAction DriftClassification DriftSignal EscapeOracle ExcisionNotApplicable FAMILY_CLEAN
FAMILY_ESCAPED FAMILY_STATES FAMILY_UNPROBED FieldDivergence Fragment HealOutcome InferenceFn InjectionMode
IntegrationLayer OracleFragment PLAIN_FIELDS PROBE_TYPE_MULTIPLIERS PayloadRedactor PolicyPressure Probe
ProbeAuditStore ProbeController ProbeExecutor ProbeLibrary ProbePipeline ProbeReport ProbeResponse ProbeScheduleConfig
ProbeScheduler ProbeType ProbeValidator REDACTED_FIELDS RepairProposal RepairVerdict ResidualField ResidualResult
RuntimeEvent SemanticJudge SemanticJudgeResult SentinelIntegration SentinelSessionSink ShadowInstance
ShadowInstanceFactory ShadowIsolation SnapshotFactory StateSnapshot StructuralAnomalyType SyncInference
TriangulatedResult VERDICTS VERDICT_CONSISTENCY_ANOMALY VERDICT_CONSISTENT VERDICT_DRIFT_DETECTED VERDICT_INCONCLUSIVE
ValidationResult ViewSnapshotFactory audit_payload canary_fragment canary_leaked comparator_confidence compare_payloads
difference_is_real drift_score emit_to_sentinel excision_request feed_audit heal_outcome health_payload localize
make_escape_oracle notify_core proposal_from_payload proposal_payload report_payload residual_payloads semantic_score
should_triangulate structural_readout triangulate two_proportion_z wilson_ci
"""
NAMES = _NAMES.split()

# What may be given or called, by name, of what is there. The rest has to stand on the page.
ARGUMENTS = {
    "CanonicalizedContextSummary": "trusted_user prior_authorization data_sensitivity escalation_chain "
    "external_reads_count taint_active session_depth",
    "ContextlessShadowBaseline": "inference_fn system_prompt",
    "DefaultComparator": "judge",
    "DefaultShadowInstanceFactory": "shadow baseline isolation",
    "DriftAccumulator": "session_id probe_library_version",
    "PolicyPressure": "constraint stress_type",
    "Probe": "probe_id probe_type probe_library_version scenario policy_pressure expected_schema inject_as timestamp "
    "canary",
    "ProbeController": "config dispatch_fn",
    "ProbeExecutor": "inference_fn context_sanitizer",
    "ProbeLibrary": "version",
    "ProbePipeline": "scheduler snapshot_factory executor shadow_factory comparator accumulator redactor audit_store "
    "library validator integrations calibration_status",
    "ProbeScheduleConfig": "context_growth_tokens external_content_threshold reputation_snapshot_path "
    "reputation_score_threshold reputation_poll_interval_seconds max_interval_seconds max_probes_per_session "
    "jitter_seconds cooldown_window_seconds",
    "RuntimeEvent": "session_id agent_id model event_type token_count has_external_content",
    "SemanticJudge": "inference_fn",
    "SentinelIntegration": "sink",
    "ShadowInstance": "inference_fn system_prompt",
    "StateSnapshot": "session_id timestamp context_window system_prompt_hash canonicalized_summary canaries "
    "snapshot_id",
    "ValidationResult": "valid anomaly detail",
}
MEMBERS = {
    "DefaultComparator": "compare score triangulate_decisions",
    "DefaultShadowInstanceFactory": "execute execute_baseline confidence",
    "DriftAccumulator": "record check_consistency_anomaly longitudinal_signal probe_results drift_by_type "
    "structural_failure_count perfect_consistency_streak",
    "DriftAction": "from_escape LOG_ONLY ELEVATED_REVIEW RESTRICTED_MODE",
    "DriftSignal": "signal_id probe_id probe_library_version snapshot_id session_id agent_id probe_type "
    "divergence_category drift_score comparator_confidence comparison_mode triangulation_result field_divergences "
    "snapshot_payload shadow_payload shadow_baseline_payload calibration_status timestamp recommended_action "
    "escape_detected longitudinal_signal",
    "PayloadRedactor": "redact redact_field redact_divergences",
    "ProbeAuditStore": "record all_signals signals_for_session",
    "ProbeController": "trigger evaluate run_reputation_poll probes_sent",
    "ProbeExecutor": "execute",
    "ProbeLibrary": "probes select version",
    "ProbePipeline": "run",
    "ProbeReport": "session_id agent_id model probe_library_version probes_sent probes_invalid probes_triangulated "
    "summary_calibration_anomalies consistency_anomaly_detected drift_signals max_drift_score drift_by_probe_type "
    "drift_by_category structural_failures escape_count escape_rate escape_rate_ci escape_by_type timeline "
    "calibration_status overall_verdict build longitudinal_signal",
    "ProbeResponse": "decision reasoning disclosed_data policy_cited escalation_suggested tool_call_attempted raw",
    "ProbeValidator": "pre_dispatch post_response",
    "SemanticJudge": "judge",
    "SentinelIntegration": "emit",
    "ShadowInstance": "execute",
}


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def words(text: str) -> set[str]:
    """Return the identifiers that stand in code."""
    return {word for code in re.findall(r"`([^`]+)`", text) for word in re.findall(r"[A-Za-z_]\w*", code)}


def firsts(title: str) -> set[str]:
    """Return the identifiers in the first column of a table."""
    return {word for row in section(title).splitlines() for word in words(row.partition("|")[2].partition("|")[0])}


def test_the_page_has_every_name_once() -> None:
    there, renamed, dropped = firsts("There"), firsts("Under another name"), firsts("Not carried over")
    assert not [name for name in NAMES if name not in there | renamed | dropped]
    assert not there & renamed - {"DriftAccumulator"}
    assert "seed" not in PAGE.lower()


def test_what_is_there_is_there() -> None:
    assert [name for name in firsts("There") if name not in probing.__all__] == []


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_every_argument_is_taken_or_stands_on_the_page(name: str) -> None:
    made: type = getattr(probing, name)
    left_out = set(ARGUMENTS[name].split()) - set(inspect.signature(made).parameters)
    assert not [argument for argument in left_out if f"{name}({argument}=...)" not in section("Not carried over")]


@pytest.mark.parametrize("name", sorted(MEMBERS))
def test_every_member_is_there_or_stands_on_the_page(name: str) -> None:
    known = set(dir(getattr(probing, name)))
    page = firsts("Under another name") | firsts("Not carried over")
    assert not [one for one in MEMBERS[name].split() if one not in known | page]


def test_every_module_that_is_named_has_what_is_named_beside_it() -> None:
    for row in section("Under another name").splitlines():
        modules = re.findall(r"`(theodolite(?:\.\w+)+)`", row)
        for module in modules:
            loaded = importlib.import_module(module)
            assert any(hasattr(loaded, word) for word in words(row)), (module, row)
