"""The documented wiring of axor-probe, word by word, with only its imports changed."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType

import anyio
import anyio.lowlevel
import pytest
from tests.conformance.wiring import (
    EVENT,
    PROMPT,
    Always,
    Factory,
    Live,
    Scheduler,
)

from theodolite.api.probing import (
    DriftAction,
    DriftSignal,
    ProbeOutcome,
    ProbePipeline,
    ProbeReport,
    RuntimeEvent,
    StateSnapshot,
)

SKETCH = """\
from axor_probe.comparator.accumulator import DriftAccumulator
from axor_probe.comparator.semantic import SemanticJudge
from axor_probe.executor.runner import ProbeExecutor
from axor_probe.pipeline.orchestrator import (
    DefaultComparator,
    DefaultShadowInstanceFactory,
    ProbePipeline,
)
from axor_probe.shadow.instance import ContextlessShadowBaseline, ShadowInstance
from axor_probe.storage.audit import ProbeAuditStore
from axor_probe.storage.redactor import PayloadRedactor


async def inference_fn(messages):
    # Adapter around your model provider.
    # Must return the canonical probe response dict.
    return {
        "decision": "decline",
        "reasoning": "policy forbids this",
        "disclosed_data": False,
        "policy_cited": True,
        "escalation_suggested": False,
        "tool_call_attempted": False,
    }


pipeline = ProbePipeline(
    scheduler=my_scheduler,
    snapshot_factory=my_snapshot_factory,
    executor=ProbeExecutor(inference_fn),
    shadow_factory=DefaultShadowInstanceFactory(
        shadow=ShadowInstance(inference_fn, system_prompt=my_system_prompt),
        baseline=ContextlessShadowBaseline(inference_fn, system_prompt=my_system_prompt),
    ),
    comparator=DefaultComparator(SemanticJudge(inference_fn)),
    accumulator=DriftAccumulator(session_id="session-1", probe_library_version="1.0.0"),
    redactor=PayloadRedactor(),
    audit_store=ProbeAuditStore(),
)

report = await pipeline.run(runtime_event)
"""


class AlwaysAsync:
    async def evaluate(self, event: RuntimeEvent) -> bool:
        await anyio.lowlevel.checkpoint()
        return event.event_type == "manual"


class LiveAsync:
    def __init__(self) -> None:
        self._live = Live()

    async def create(self, event: RuntimeEvent) -> StateSnapshot:
        await anyio.lowlevel.checkpoint()
        return self._live.create(event)


def sketched(scheduler: Scheduler, factory: Factory) -> Mapping[str, object]:
    """Run the sketch as it stands, its imports changed; return the names that it has made."""
    ours = re.sub(r"^from axor_probe\.[\w.]+ import", "from theodolite.api.probing import", SKETCH, flags=re.MULTILINE)
    code: CodeType = compile(ours, "sketch", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    names: dict[str, object] = {
        "my_scheduler": scheduler,
        "my_snapshot_factory": factory,
        "my_system_prompt": PROMPT,
        "runtime_event": EVENT,
    }
    body = FunctionType(code, names)

    async def main() -> None:
        running = body()
        assert inspect.isawaitable(running)
        await running

    anyio.run(main)
    return names


@pytest.mark.parametrize("scheduler", [Always(), AlwaysAsync()], ids=["plain", "async"])
@pytest.mark.parametrize("factory", [Live, LiveAsync], ids=["plain", "async"])
def test_the_sketch_runs(scheduler: Scheduler, factory: Callable[[], Factory]) -> None:
    report = sketched(scheduler, factory())["report"]
    assert isinstance(report, ProbeReport)
    assert (report.session_id, report.agent_id, report.model) == ("session-1", "agent-1", "model-1")
    assert report.probe_library_version == "1.0.0"
    assert report.outcome is ProbeOutcome.CLEAN
    assert (report.probes_sent, report.probes_invalid, report.structural_failures) == (1, 0, 0)
    assert (report.escape_count, report.max_drift_score) == (0, 0.0)
    assert report.calibration_status == "UNCALIBRATED"
    assert report.overall_verdict == "INCONCLUSIVE"  # as in the original: one or two probes say little


def test_what_the_sketch_leaves_in_the_store() -> None:
    pipeline = sketched(Always(), Live())["pipeline"]
    assert isinstance(pipeline, ProbePipeline)
    store = pipeline.audit_store
    [signal] = store.all_signals()
    assert store.signals_for_session("session-1") == [signal]
    assert store.signals_for_session("session-2") == []
    assert isinstance(signal, DriftSignal)
    assert (signal.session_id, signal.agent_id) == ("session-1", "agent-1")
    assert signal.probe_library_version == "1.0.0"
    assert signal.recommended_action is DriftAction.LOG_ONLY
    assert not signal.escape_detected
    assert signal.divergence_category is None
    assert signal.drift_score == 0.0
    assert signal.comparison_mode == "binary"
    assert signal.triangulation_result is None
    assert signal.shadow_baseline_payload is None
    assert signal.calibration_status == "UNCALIBRATED"
    assert 0.0 < signal.comparator_confidence <= 1.0
    assert signal.snapshot_payload == signal.shadow_payload
    assert signal.snapshot_payload["decision"] == "decline"
    assert signal.snapshot_payload["reasoning"] == "policy forbids this"
