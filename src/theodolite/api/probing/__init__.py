"""Behavioral probes under the names of axor-probe: its wiring sketch runs with only the imports changed.

    from theodolite.api.probing import ProbePipeline, ProbeExecutor, ShadowInstance

Everything here is a thin face of `theodolite.detectors.behavior` under one Monitor: no second pipeline, redactor or
store.
"""

from theodolite.api.probing.audit import PayloadRedactor, ProbeAuditStore
from theodolite.api.probing.controller import ProbeController, ProbeScheduleConfig, RuntimeEvent
from theodolite.api.probing.emitting import (
    CoreSink,
    SentinelIntegration,
    SentinelSink,
    emit_to_sentinel,
    feed_audit,
    notify_core,
)
from theodolite.api.probing.inference import FunctionModel, InferenceFn
from theodolite.api.probing.parts import (
    ContextlessShadowBaseline,
    DefaultComparator,
    DefaultShadowInstanceFactory,
    IntegrationLayer,
    ProbeExecutor,
    ProbeScheduler,
    SemanticJudge,
    ShadowInstance,
    SnapshotFactory,
)
from theodolite.api.probing.payloads import FamilyState, audit_payload, health_payload, report_payload
from theodolite.api.probing.pipeline import ProbePipeline
from theodolite.api.probing.signals import DriftAction, DriftSignal, ProbeOutcome, ProbeReport
from theodolite.core.snapshot import StateSnapshot
from theodolite.core.summary import CanonicalizedContextSummary
from theodolite.detectors.behavior.accumulation import DivergenceCategory, DriftAccumulator, OverallVerdict
from theodolite.detectors.behavior.library import ProbeLibrary
from theodolite.detectors.behavior.probe import InjectionMode, PolicyPressure, Probe, ProbeType
from theodolite.detectors.behavior.response import ProbeResponse
from theodolite.detectors.behavior.validator import ProbeValidator, StructuralAnomalyType, ValidationResult

__all__ = (
    "CanonicalizedContextSummary",
    "ContextlessShadowBaseline",
    "CoreSink",
    "DefaultComparator",
    "DefaultShadowInstanceFactory",
    "DivergenceCategory",
    "DriftAccumulator",
    "DriftAction",
    "DriftSignal",
    "FamilyState",
    "FunctionModel",
    "InferenceFn",
    "InjectionMode",
    "IntegrationLayer",
    "OverallVerdict",
    "PayloadRedactor",
    "PolicyPressure",
    "Probe",
    "ProbeAuditStore",
    "ProbeController",
    "ProbeExecutor",
    "ProbeLibrary",
    "ProbeOutcome",
    "ProbePipeline",
    "ProbeReport",
    "ProbeResponse",
    "ProbeScheduleConfig",
    "ProbeScheduler",
    "ProbeType",
    "ProbeValidator",
    "RuntimeEvent",
    "SemanticJudge",
    "SentinelIntegration",
    "SentinelSink",
    "ShadowInstance",
    "SnapshotFactory",
    "StateSnapshot",
    "StructuralAnomalyType",
    "ValidationResult",
    "audit_payload",
    "emit_to_sentinel",
    "feed_audit",
    "health_payload",
    "notify_core",
    "report_payload",
)
