"""What probes would take is counted role by role, with all that is sent."""

from __future__ import annotations

import msgspec
import pytest

from theodolite.core.event import MessageObserved, SystemPromptSet, Tool, ToolsDeclared
from theodolite.core.inquiry import Query, Role
from theodolite.detectors.behavior.detector import BehaviorDetector
from theodolite.runtime.estimate import ANSWER, CHARACTERS, LETTER, Estimate, Share
from theodolite.runtime.monitor import Monitor
from theodolite.testing.fakes import AskingDetector


def estimated(*tools: Tool, text: str = "Where is my order?") -> dict[Role, Share]:
    estimate = Estimate()
    with Monitor([BehaviorDetector()]) as monitor, monitor.session("s") as session:
        session.observe(SystemPromptSet(prompt_hash="0" * 64))
        session.observe(ToolsDeclared(tools=tools))
        session.observe(MessageObserved(role="user", text=text))
        session.request_probe("a test")
        estimate.probe(session).result()
    assert estimate.sessions == 1
    return dict(estimate.shares)


def test_each_role_is_counted_by_itself() -> None:
    shares = estimated()
    assert set(shares) == {Role.SUBJECT, Role.SHADOW}
    # The copy is asked the probe and its twin, the other role these behind a benign context and the shadow once.
    assert {role: share.calls for role, share in shares.items()} == {Role.SUBJECT: 2, Role.SHADOW: 3}
    assert all(share.output_tokens == share.calls * ANSWER for share in shares.values())
    assert min(share.input_tokens for share in shares.values()) > 0


def test_a_message_counts_for_the_copy_and_a_benign_context_of_its_length_for_the_other() -> None:
    short, long = estimated(text="?"), estimated(text="?" * 4_001)
    # Other questions are drawn each time, of some hundred characters.
    assert long[Role.SUBJECT].input_tokens - short[Role.SUBJECT].input_tokens == pytest.approx(2_000, abs=300)
    assert long[Role.SHADOW].input_tokens - short[Role.SHADOW].input_tokens > 800


def test_a_choice_is_answered_by_a_letter() -> None:
    asked = Query(role=Role.SUBJECT, prompt="x" * 40, samples=7)
    assert Share.of(asked) == Share(7, 70, 7 * ANSWER)
    assert Share.of(msgspec.structs.replace(asked, options=("yes", "no"))) == Share(7, 70, 7 * LETTER)


def test_tools_are_sent_to_both_and_count() -> None:
    tool = Tool(name="send", description="d" * 4_000)
    for role, share in estimated(tool).items():
        assert share.input_tokens - estimated()[role].input_tokens >= 1_000


@pytest.mark.parametrize(
    ("characters", "tokens"), [(1, 1), (CHARACTERS, 1), (CHARACTERS + 1, 2), (2 * CHARACTERS, 2), (399, 100)]
)
@pytest.mark.parametrize("samples", [1, 3])
def test_a_part_of_a_token_counts_as_a_whole_one(characters: int, tokens: int, samples: int) -> None:
    session = Monitor([AskingDetector(prompt="x" * characters, samples=samples)]).session("s-1")
    session.request_probe("r")
    estimate = Estimate()
    [decision] = estimate.probe(session).result(timeout=0)
    assert [signal.code for signal in decision.signals] == ["asking.failure"]
    share = Share(calls=samples, input_tokens=samples * tokens, output_tokens=samples * ANSWER)
    assert estimate.shares == {Role.SUBJECT: share, Role.SHADOW: share}
