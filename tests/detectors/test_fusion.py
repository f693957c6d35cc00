from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from theodolite.core.calibration import Dataset
from theodolite.core.event import Event, ToolCallProposed, TurnEnded
from theodolite.core.policy import Action, Policy
from theodolite.core.reading import Cause, Evidence, Failure, Reading
from theodolite.core.window import Window
from theodolite.detectors.fusion import Fused, HijackFusion, Part, shipped
from theodolite.detectors.trajectory.hijack import HijackDetector
from theodolite.runtime.monitor import Monitor
from theodolite.stats.e_process import Maxima
from theodolite.stats.logistic import logit
from theodolite.testing.sessions import clean_session, hijacked_session

CALL = ToolCallProposed(tool="send_money", arguments={})
CLEAN = Maxima.of([-3.0 + place / 100 for place in range(300)], 2.0)


def fused(*processes: str, **parts: Part) -> Fused:
    return Fused(
        base="hijack.call",
        alert=0.8,
        alpha=0.05,
        maxima=CLEAN,
        source="a test",
        dataset=Dataset(name="none"),
        parts={f"{name}.x": part for name, part in parts.items()},
        processes=processes,
    )


def read(code: str, score: float, **facts: float) -> Reading:
    from theodolite.core.reading import Fact

    detector = code.partition(".")[0]
    evidence = (Evidence(kind=f"{detector}.why", seqs=(0,)),)
    told = tuple([Fact(name, value) for name, value in facts.items()])
    return Reading(detector=detector, version="1", code=code, score=score, evidence=evidence, facts=told)


class Heard:
    """A fusion with its state, so that a test reads like a session."""

    def __init__(self, fitted: Fused) -> None:
        self.fusion = HijackFusion(fitted)
        self.state = self.fusion.begin()

    def hear(self, *said: Reading | Failure, event: Event = CALL) -> dict[str, Reading | Failure]:
        answers = self.fusion.fuse(self.state, event, said, Window())
        return {answer.code if isinstance(answer, Reading) else "failure": answer for answer in answers}

    def score(self, code: str, *said: Reading | Failure, event: Event = CALL) -> float:
        answer = self.hear(*said, event=event)[code]
        assert isinstance(answer, Reading)
        return answer.score


def test_alone_the_base_is_the_score_of_the_call() -> None:
    assert Heard(fused()).score("fusion.call", read("hijack.call", 0.7)) == pytest.approx(0.7)


def test_another_code_raises_the_score_above_its_threshold_and_never_lowers_it() -> None:
    fitted = fused(other=Part(weight=0.5, above=1.0))
    base = read("hijack.call", 0.7)
    assert Heard(fitted).score("fusion.call", base, read("other.x", 0.99)) > 0.75
    assert Heard(fitted).score("fusion.call", base, read("other.x", 0.01)) == pytest.approx(0.7)
    assert Heard(fitted).score("fusion.call", base, read("unknown.x", 0.99)) == pytest.approx(0.7)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_more_alarm_never_gives_a_lower_score(a: float, b: float, more_a: float, more_b: float) -> None:
    fitted = fused(other=Part(weight=0.5))
    low = Heard(fitted).score("fusion.call", read("hijack.call", min(a, more_a)), read("other.x", min(b, more_b)))
    high = Heard(fitted).score("fusion.call", read("hijack.call", max(a, more_a)), read("other.x", max(b, more_b)))
    assert low <= high


def test_without_the_base_a_call_has_no_score_and_says_so() -> None:
    heard = Heard(fused(other=Part(weight=1.0)))
    missing = Failure(detector="hijack", version="1", cause=Cause.NO_EVIDENCE)
    answer = heard.hear(missing, read("other.x", 0.9))["failure"]
    assert isinstance(answer, Failure)
    assert answer.cause is Cause.NO_EVIDENCE


def test_an_answer_of_a_model_that_is_not_the_sessions_own_is_not_heard() -> None:
    surrogate = replace(read("hijack.call", 0.9), surrogate=True)
    assert set(Heard(fused()).hear(surrogate)) == {"failure"}


def test_events_that_are_no_calls_are_passed_over() -> None:
    assert Heard(fused()).hear(event=TurnEnded()) == {}


def test_the_session_is_as_sure_as_its_highest_call_and_stays_so() -> None:
    heard = Heard(fused())
    scores = [heard.score("fusion.session", read("hijack.call", score)) for score in (0.1, 0.9)]
    assert scores[0] == 0.0
    assert scores[1] == pytest.approx(1.0 - 1.0 / CLEAN.e_value(logit(0.9)))


def test_the_session_is_told_when_it_moves_and_not_at_each_call_after() -> None:
    heard = Heard(fused())
    told = [set(heard.hear(read("hijack.call", score))) for score in (0.1, 0.9, 0.1, 0.9, 0.5)]
    assert told == [{"fusion.call", "fusion.session"}] * 2 + [{"fusion.call"}] * 3


def test_the_evidence_of_a_session_names_its_highest_call_and_what_was_bet_since() -> None:
    heard = Heard(fused("behavior"))
    heard.hear(read("hijack.call", 0.99), event=replace(CALL, seq=4))
    later = heard.hear(read("behavior.x", 0.5, e_value=90.0), event=TurnEnded(seq=9))["fusion.session"]
    assert isinstance(later, Reading)
    assert [(item.kind, item.seqs) for item in later.evidence] == [("fusion.bet", (4, 9)), ("behavior.why", (0,))]


def test_the_session_alarms_where_the_mean_of_the_bets_reaches_one_over_alpha() -> None:
    heard = Heard(fused("behavior"))
    low = heard.score("fusion.session", read("hijack.call", 0.5))
    assert low < 0.95 <= heard.score("fusion.session", read("behavior.x", 0.5, e_value=41.0), event=TurnEnded())
    # It is the newest value that counts: an e-process may fall again.
    assert heard.score("fusion.session", read("behavior.x", 0.5, e_value=0.0), event=TurnEnded()) < 0.95
    assert heard.hear(read("stranger.x", 0.5, e_value=1e9), event=TurnEnded()) == {}


def test_what_alarms_carries_the_evidence_that_it_was_given() -> None:
    answer = Heard(fused()).hear(read("hijack.call", 0.9))["fusion.call"]
    assert isinstance(answer, Reading)
    assert [item.kind for item in answer.evidence] == ["hijack.why"]
    quiet = Heard(fused()).hear(read("hijack.call", 0.1))["fusion.call"]
    assert isinstance(quiet, Reading)
    assert quiet.evidence == ()


def test_sessions_that_are_too_few_for_alpha_are_refused() -> None:
    few = Maxima.of([-3.0] * 10)
    with pytest.raises(ValueError, match="cannot alarm"):
        Fused(base="a.b", alert=0.5, alpha=0.05, maxima=few, source="s", dataset=Dataset(name="none"))
    with pytest.raises(ValueError, match="below 0"):
        Part(weight=-0.1)


def test_what_ships_alarms_on_a_hijack_and_not_on_a_clean_session() -> None:
    for events, alarmed in ((hijacked_session(), True), (clean_session(), False)):
        with Monitor([HijackDetector()], fusions=[HijackFusion()]).session("s") as session:
            signals = [signal for event in events for signal in session.observe(event).signals]
        codes = {signal.code for signal in signals if signal.alarmed}
        assert ("fusion.call" in codes) is alarmed
        assert all(not isinstance(signal.said, Failure) for signal in signals)


def test_with_hold_a_hijacked_call_is_stopped_before_it_runs() -> None:
    monitor = Monitor([HijackDetector()], fusions=[HijackFusion()], policy=Policy(hold=True))
    with monitor.session("s") as session:
        decisions = [session.observe(event) for event in hijacked_session()]
    stopped = [decision for decision in decisions if not decision.allowed]
    assert stopped
    assert {decision.action for decision in stopped} == {Action.ELEVATED_REVIEW}


def test_the_shipped_sessions_are_enough_for_their_alpha() -> None:
    fused = shipped()
    assert fused.maxima.n == 725
    assert (fused.maxima.n + 1) * fused.alpha >= 1
