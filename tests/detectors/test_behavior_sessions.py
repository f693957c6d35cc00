"""The detector that probes, in a session: what its probes add up to, and what follows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest
from tests.detectors.behavior_answers import COMPLIES, DECLINES, HASH, HELLO, PROMPT, detector

from theodolite.core.calibration import Band, Calibration, Dataset
from theodolite.core.event import (
    ModelCalled,
    SystemPromptSet,
)
from theodolite.core.inquiry import Query, Role
from theodolite.core.policy import Action, Decision, Outcome, outcome
from theodolite.core.reading import Reading, Status
from theodolite.detectors.behavior.accumulation import ALPHA_LONG
from theodolite.detectors.behavior.detector import SESSION, TOLD, BehaviorDetector, BehaviorSettings
from theodolite.detectors.behavior.library import shipped
from theodolite.redactors.rules import RuleRedactor
from theodolite.runtime.drive import Panel
from theodolite.runtime.monitor import Monitor
from theodolite.testing.fakes import PolicyModel, ScriptedModel
from theodolite.testing.fakes.policies import Asked
from theodolite.verifiers.triangulation import TriangulationVerifier


def probed(
    script: Callable[[Query], str],
    *,
    times: int = 1,
    own: bool = True,
    calibration: Calibration | None = None,
    prompt: str = PROMPT,
    verifiers: Sequence[TriangulationVerifier] = (),
) -> list[Decision]:
    model = ScriptedModel(script, name="m-1")
    panel = Panel({Role.SUBJECT: model, Role.SHADOW: model, Role.BASELINE: model})
    monitor = Monitor(
        [detector(BehaviorSettings(system=prompt))],
        panel=panel,
        redactor=RuleRedactor(),
        calibration=calibration,
        secret=bytes(range(32)),
        verifiers=verifiers,
    )
    decisions: list[Decision] = []
    with monitor.session("s-1", agent="a-1") as session:
        session.observe(HELLO)
        session.observe(SystemPromptSet(prompt_hash=HASH))
        session.observe(ModelCalled(model="m-1" if own else "m-2"))
        for _ in range(times):
            session.request_probe("now")
            decisions += session.drain_sync()
    return decisions


def leaks(query: Query) -> str:
    return json.dumps({**DECLINES, "reasoning": query.canary if query.role is Role.SUBJECT else ""})


POLICY = PolicyModel(templates=shipped().templates)


def goes_along(query: Query) -> str:
    return json.dumps(COMPLIES if query.role is Role.SUBJECT or POLICY.asked(query) is Asked.TWIN else DECLINES)


def by_code(decision: Decision, code: str) -> Reading:
    (found,) = [signal.said for signal in decision.signals if signal.code == code]
    assert isinstance(found, Reading)
    return found


CALIBRATED = Calibration(
    schema=1,
    id="c",
    status=Status.CALIBRATED,
    alpha=0.01,
    date="2026-11-30",
    dataset=Dataset(name="d"),
    versions={BehaviorDetector.name: BehaviorDetector.version},
    bands={"behavior.session": Band(alert=0.995, strong=0.9995)},
    agents=("a-1",),
    models=("m-1",),
)


class TestASession:
    @pytest.mark.parametrize("own", [True, False])
    def test_a_disclosure_is_a_finding_at_once_and_of_a_foreign_model_it_is_none(self, *, own: bool) -> None:
        (decision,) = probed(leaks, own=own)
        told = next(signal for signal in decision.signals if signal.code == TOLD)
        assert (told.status, told.alarmed, told.finds, told.acts) == (Status.EXACT, True, own, False)
        assert outcome([decision]) is (Outcome.FINDING if own else Outcome.CLEAN)
        single = [signal for signal in decision.signals if signal.code not in {TOLD, SESSION}]
        assert [(signal.alarmed, signal.acts, signal.finds) for signal in single] == [(True, False, False)]
        assert all(isinstance(signal.said, Reading) and signal.said.surrogate is not own for signal in decision.signals)

    def test_an_agent_that_is_drifted_from_its_first_probe_is_restricted_once_calibrated(self) -> None:
        decisions = probed(leaks, times=20, calibration=CALIBRATED)
        actions = [decision.action for decision in decisions]
        assert actions[0] is Action.LOG_ONLY
        assert actions[-1] is Action.RESTRICTED_MODE
        assert by_code(decisions[-1], SESSION).fact("isolation") is None
        uncalibrated = probed(leaks, times=20)
        assert {decision.action for decision in uncalibrated} == {Action.LOG_ONLY, Action.ELEVATED_REVIEW}

    def test_words_alone_ask_for_a_review_and_no_gate_vouches_for_more(self) -> None:
        decisions = probed(goes_along, times=20, calibration=CALIBRATED)
        assert decisions[-1].action is Action.ELEVATED_REVIEW
        evidence = by_code(decisions[-1], SESSION)
        assert evidence.fact("e_value") == 4 / ALPHA_LONG
        assert not evidence.vouched

    def test_arms_that_were_not_seen_to_be_alike_ask_for_a_review_at_most(self) -> None:
        decisions = probed(leaks, times=20, calibration=CALIBRATED, prompt="")
        assert decisions[-1].action is Action.ELEVATED_REVIEW

    def test_a_session_that_answers_as_its_shadow_comes_to_nothing(self) -> None:
        decisions = probed(lambda query: json.dumps(DECLINES), times=20)  # noqa: ARG005
        assert {decision.action for decision in decisions} == {Action.LOG_ONLY}
        assert {signal.alarmed for decision in decisions for signal in decision.signals} == {False}
        assert by_code(decisions[-1], SESSION).fact("probes") == 20.0

    def test_the_canary_and_what_is_personal_do_not_leave_in_the_answer_that_is_kept(self) -> None:
        def tells(query: Query) -> str:
            return json.dumps({**COMPLIES, "reasoning": f"It is {query.canary}, write to bob@example.org."})

        (decision,) = probed(tells)
        assert "TH-" not in str(decision)
        assert "bob@example.org" not in str(decision)
        assert "[REDACTED:CANARY]" in str(decision)
