from __future__ import annotations

import msgspec
import pytest
from msgspec import UNSET, Raw

from theodolite.contracts import read
from theodolite.core.arguments import Foreign
from theodolite.core.contract import Contracts, Divergence, Location
from theodolite.core.errors import ConfigError
from theodolite.core.event import AnyHostEvent, Tool, ToolCallProposed, ToolResultObserved, ToolsDeclared
from theodolite.core.policy import Decision, Mode, Policy
from theodolite.core.reading import Failure, Reading, Status
from theodolite.core.window import Window
from theodolite.detectors.payload.detector import RESULT, SHAPE, PayloadDetector, PayloadSettings
from theodolite.runtime.monitor import Monitor

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
DECLARED = ToolsDeclared(
    tools=(
        Tool(name="count", parameters=Raw(msgspec.json.encode(SCHEMA))),
        Tool(name="loose"),
        Tool(name="broken", parameters=Raw(b'{"type": "strng"}')),
    )
)


def contracts() -> Contracts:
    return read([{"name": "count", "inputSchema": SCHEMA, "outputSchema": SCHEMA}])


def decisions(*events: AnyHostEvent, detector: PayloadDetector | None = None, **modes: Mode) -> list[Decision]:
    with Monitor([detector or PayloadDetector()], policy=Policy(modes=modes)).session("s") as session:
        return [session.observe(event) for event in events]


def said(*events: AnyHostEvent, detector: PayloadDetector | None = None) -> list[Reading | Failure]:
    """Return what was said, before it is redacted."""
    made = detector or PayloadDetector()
    state = made.begin()
    return [one for event in events for one in made.update(state, event, Window())]


def call(tool: str, **arguments: object) -> ToolCallProposed:
    return ToolCallProposed(tool=tool, arguments=arguments)


def test_a_call_that_does_not_fit_is_refused_and_one_that_fits_is_not() -> None:
    _, bad, good = decisions(DECLARED, call("count", n="three"), call("count", n=3))
    assert (bad.allowed, good.allowed) == (False, True)
    [signal] = bad.signals
    assert (signal.code, signal.status, signal.alarmed) == (SHAPE, Status.EXACT, True)
    assert not good.signals[0].alarmed


def test_in_the_mode_warn_it_is_told_only() -> None:
    _, decision = decisions(DECLARED, call("count", n="three"), payload=Mode.WARN)
    assert decision.allowed
    assert decision.signals[0].alarmed


def test_evidence_says_where_and_which_types_and_no_value() -> None:
    [reading] = said(DECLARED, call("count", n=["s3cret"], m="s3cret"))
    assert isinstance(reading, Reading)
    assert [(one.kind, one.path, one.expected, one.observed) for one in reading.evidence] == [
        ("payload.type_mismatch", "/n", "integer", "array"),
        ("payload.undeclared_field", "/m", "absent", "string"),
    ]
    assert (reading.fact("findings"), reading.fact("observations")) == (1.0, 1.0)
    assert "s3cret" not in repr(reading)


def test_what_no_contract_forbids_is_told_and_allowed_and_may_be_left_out() -> None:
    [reading] = said(DECLARED, call("count", n=1, m=2))
    assert isinstance(reading, Reading)
    assert (reading.score, [one.kind for one in reading.evidence]) == (0.0, ["payload.undeclared_field"])
    [quiet] = said(DECLARED, call("count", n=1, m=2), detector=PayloadDetector(PayloadSettings(observe=False)))
    assert isinstance(quiet, Reading)
    assert quiet.evidence == ()


def test_a_tool_that_is_not_on_offer_is_refused_where_others_are() -> None:
    assert said(call("other")) == []
    [reading] = said(DECLARED, call("other"))
    assert isinstance(reading, Reading)
    assert [one.kind for one in reading.evidence] == ["payload.unknown_operation"]


def test_a_tool_without_a_schema_is_not_judged() -> None:
    assert said(DECLARED, call("loose", x=1)) == []


def test_a_schema_that_is_none_is_a_failure_and_not_a_pass() -> None:
    [failure] = said(DECLARED, call("broken"))
    assert isinstance(failure, Failure)
    assert "/type" in failure.detail


def test_a_later_declaration_replaces_an_earlier_one() -> None:
    other = ToolsDeclared(tools=(Tool(name="count", parameters=Raw(b'{"required": ["m"]}')),))
    readings = said(DECLARED, call("count", n=1), other, call("count", n=1))
    assert [one.score for one in readings if isinstance(one, Reading)] == [0.0, 1.0]


def test_what_was_no_json_in_the_hosts_own_object_is_found() -> None:
    [reading] = said(DECLARED, call("count", n=1, m=float("nan")))
    assert isinstance(reading, Reading)
    assert [(one.kind, one.path, one.observed) for one in reading.evidence] == [("payload.not_json", "/m", "NaN")]


def test_arguments_that_the_channel_did_not_show_are_no_pass() -> None:
    [failure] = said(DECLARED, ToolCallProposed(tool="count", arguments=UNSET))
    assert isinstance(failure, Failure)


BROKEN = Foreign("", "not_json")


class TestTextThatIsNoJson:
    def test_is_found_with_what_is_due_and_refused(self) -> None:
        event = ToolCallProposed(tool="count", foreign=(BROKEN,))
        [reading] = said(DECLARED, event)
        assert isinstance(reading, Reading)
        assert [(one.kind, one.path, one.expected, one.observed) for one in reading.evidence] == [
            ("payload.not_json", "", "a JSON object", "text that is no JSON")
        ]
        [found] = found_in(event)
        assert found.location is Location.ARGUMENTS
        assert not decisions(DECLARED, event)[1].allowed

    def test_and_what_is_nested_too_deeply(self) -> None:
        [reading] = said(DECLARED, ToolCallProposed(tool="count", foreign=(Foreign("", "too_deep"),)))
        assert isinstance(reading, Reading)
        assert [one.kind for one in reading.evidence] == ["payload.too_deep"]

    def test_of_a_tool_without_a_schema_is_not_judged(self) -> None:
        assert said(DECLARED, ToolCallProposed(tool="loose", foreign=(BROKEN,))) == []

    @pytest.mark.parametrize(("schema", "judged"), [({"type": "object"}, True), ({"type": "string"}, False)])
    def test_of_an_operation_is_judged_where_it_takes_no_text(self, schema: object, *, judged: bool) -> None:
        body = {"requestBody": {"content": {"application/json": {"schema": schema}}}}
        post = {"operationId": "note", "responses": {"200": {"description": "x"}}, **body}
        info = {"title": "t", "version": "1"}
        own = read({"openapi": "3.1.0", "info": info, "paths": {"/n": {"post": post}}})
        [one] = said(ToolCallProposed(tool="note", foreign=(BROKEN,)), detector=PayloadDetector(contracts=own))
        assert isinstance(one, Reading if judged else Failure)


def found_in(event: ToolCallProposed) -> tuple[Divergence, ...]:
    detector = PayloadDetector(contracts=contracts())
    found = detector.divergences(detector.begin(), event)
    assert isinstance(found, tuple)
    return found


def test_too_many_tools_are_not_kept_and_it_is_said() -> None:
    many = ToolsDeclared(tools=tuple([Tool(name=f"t{n}") for n in range(5_000)]))
    assert [type(one) for one in said(many, call("other"))] == [Failure]


class TestGivenContracts:
    def test_go_before_what_the_session_declares(self) -> None:
        other = ToolsDeclared(tools=(Tool(name="count", parameters=Raw(b"{}")), Tool(name="more")))
        detector = PayloadDetector(contracts=contracts())
        scores = [
            one.score for one in said(other, call("count"), call("more"), detector=detector) if isinstance(one, Reading)
        ]
        assert scores == [1.0]

    def test_a_tool_that_they_do_not_have_is_refused_unless_it_is_declared(self) -> None:
        detector = PayloadDetector(contracts=contracts())
        [reading] = said(call("loose"), DECLARED, call("loose"), detector=detector)
        assert isinstance(reading, Reading)
        assert reading.score == 1.0

    def test_a_tool_without_a_schema_is_known_and_not_judged(self) -> None:
        own = read([{"type": "bash_20250124", "name": "bash"}, {"name": "bare"}, {"type": "function", "name": "none"}])
        detector = PayloadDetector(contracts=own)
        assert said(call("bash", command="ls"), call("bare"), detector=detector) == []
        assert said(DECLARED, call("bash", command="ls"), call("bare", n=float("nan")), detector=detector) == []
        assert all(one.allowed for one in decisions(call("bash"), detector=PayloadDetector(contracts=own)))
        # A function of OpenAI that is declared without parameters has none: it is judged.
        assert [type(one) for one in said(call("none"), detector=detector)] == [Reading]

    def test_what_the_session_declares_counts_where_they_have_no_schema(self) -> None:
        detector = PayloadDetector(contracts=read([{"name": "count"}]))
        [reading] = said(DECLARED, call("count", n="three"), detector=detector)
        assert isinstance(reading, Reading)
        assert reading.score == 1.0

    def test_results_are_shown_and_do_not_act(self) -> None:
        detector = PayloadDetector(contracts=contracts())
        events = [
            ToolResultObserved(tool="count", text=text, error=error)
            for text, error in [('{"n": 1}', False), ('{"n": "x"}', False), ('{"n": "x"}', True), ("one", False)]
        ]
        readings = said(*events, detector=detector)
        assert [(one.code, one.score) for one in readings if isinstance(one, Reading)] == [(RESULT, 0.0), (RESULT, 1.0)]
        band = detector.bands[RESULT]
        assert (band.acts, band.finds) == (False, False)


def test_a_state_that_was_saved_and_restored_judges_alike() -> None:
    detector = PayloadDetector()
    state = detector.begin()
    detector.update(state, DECLARED, Window())
    again = msgspec.json.decode(msgspec.json.encode(state), type=type(state))
    other = PayloadDetector()
    assert other.update(again, call("count"), Window()) == detector.update(state, call("count"), Window())


def test_what_a_tool_of_the_session_returns_is_held_against_what_it_declared() -> None:
    schema = Raw(msgspec.json.encode(SCHEMA))
    tools = ToolsDeclared(
        tools=(
            Tool(name="count", parameters=schema, results=schema),
            Tool(name="mute", parameters=schema),
            Tool(name="broken", results=Raw(b'{"type": "strng"}')),
        )
    )
    bad, fine = '{"n": "3"}', '{"n": 3}'
    for text, error, scores in [(bad, False, [1.0]), (fine, False, [0.0]), (bad, True, []), ("no JSON", False, [])]:
        found = said(tools, ToolResultObserved(tool="count", text=text, error=error))
        assert [(one.code, one.score) for one in found if isinstance(one, Reading)] == [(RESULT, s) for s in scores]
    assert said(tools, ToolResultObserved(tool="mute", text=bad)) == []
    [failure] = said(tools, ToolResultObserved(tool="broken", text=bad))
    assert isinstance(failure, Failure)
    assert said(ToolsDeclared(tools=()), ToolResultObserved(tool="count", text=bad)) == []
    _, shown = decisions(tools, ToolResultObserved(tool="count", text=bad))
    assert [(signal.code, signal.alarmed) for signal in shown.signals] == [(RESULT, True)]
    assert shown.allowed


def test_the_contract_of_the_operator_goes_before_what_the_session_declares_of_results() -> None:
    declared = ToolsDeclared(tools=(Tool(name="count", results=Raw(b'{"type": "array"}')),))
    detector = PayloadDetector(contracts=contracts())
    [reading] = said(declared, ToolResultObserved(tool="count", text='{"n": 3}'), detector=detector)
    assert isinstance(reading, Reading)
    assert reading.score == 0.0


def test_files_that_nobody_read_are_not_passed_over() -> None:
    with pytest.raises(ConfigError, match="names of files"):
        PayloadDetector(PayloadSettings(contracts=("tools.json",)))
    PayloadDetector(PayloadSettings(contracts=("tools.json",)), contracts=contracts())
