"""What probes would take is counted role by role, with all that is sent."""

from __future__ import annotations

import pytest

from theodolite.core.event import MessageObserved, SystemPromptSet, Tool, ToolsDeclared
from theodolite.core.inquiry import Role
from theodolite.detectors.behavior.detector import BehaviorDetector
from theodolite.runtime.estimate import ANSWER, CHARACTERS, Estimate, Share
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
    assert {(share.calls, share.output_tokens) for share in shares.values()} == {(1, ANSWER)}
    assert shares[Role.SUBJECT].input_tokens > shares[Role.SHADOW].input_tokens > 0


def test_a_message_counts_for_the_copy_alone() -> None:
    short, long = estimated(text="?"), estimated(text="?" * 4_001)
    assert long[Role.SUBJECT].input_tokens - short[Role.SUBJECT].input_tokens == 1_000
    assert long[Role.SHADOW] == short[Role.SHADOW]


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
