from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, Struct

from theodolite.core import redaction
from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.core.event import (
    AnyEvent,
    Cleared,
    GoalStated,
    HandedOff,
    InquirySettled,
    MessageObserved,
    ModelCalled,
    SystemPromptSet,
    Tool,
    ToolCallProposed,
    ToolResultObserved,
    ToolsDeclared,
)
from theodolite.core.reading import Cause, Evidence, Fact, Failure, Reading
from theodolite.core.redaction import EVENT_TEXT, QUOTE, DenyAll, Redacted, redact, redact_event
from theodolite.testing.fakes import RecordingRedactor
from theodolite.testing.strategies import events, failures, readings

SECRET = "hunter2-7f3a"


class Forgetful:
    """Removes one secret, and any canary, and nothing else. Numbers that hold the secret digits are secret too."""

    name = "forgetful"
    version = "1"

    def __init__(self, *known: str) -> None:
        self.known = known or (SECRET,)

    def text(self, value: str, secrets: Collection[str] = ()) -> Redacted:
        for secret in (*self.known, *secrets):
            value = value.replace(secret, "[GONE]")
        return Redacted(value)

    def field(self, name: str, value: str) -> Redacted:
        return Redacted(value if (name, value) == ("kind", "odd") else "[REDACTED:UNKNOWN_FIELD]")


def shown(value: Struct | Raw) -> str:
    return (bytes(value) if isinstance(value, Raw) else msgspec.json.encode(value)).decode()


def words(value: object) -> Iterator[str]:
    if is_mapping(value):
        for key, item in value.items():
            yield str(key)
            yield from words(item)
    elif is_sequence(value):
        for item in value:
            yield from words(item)
    elif isinstance(value, str):
        yield value


PLANTED: list[AnyEvent] = [
    GoalStated(text=f"pay with {SECRET}"),
    MessageObserved(role="user", text=SECRET),
    ToolResultObserved(tool=SECRET, text=f"a {SECRET} b", call=SECRET),
    ToolCallProposed(tool=SECRET, call=SECRET, arguments={SECRET: {SECRET: [SECRET, {"k": SECRET}]}}),
    ToolCallProposed(tool="t", arguments={f"{SECRET}": object()}),
    ToolsDeclared(tools=(Tool(name=SECRET, description=SECRET, parameters=Raw(b'{"const":"hunter2-7f3a"}')),)),
    ToolsDeclared(tools=(Tool(name="t", results=Raw(b'{"const":"hunter2-7f3a"}')),)),
    ModelCalled(model=SECRET),
    SystemPromptSet(prompt_hash=SECRET),
    HandedOff(to=SECRET, child=SECRET),
    Cleared(operator="ops-7", reason=SECRET),
    InquirySettled(
        asker=SECRET,
        about=0,
        said=(
            Failure(detector=SECRET, version=SECRET, cause=Cause.ERROR, detail=SECRET),
            Reading(
                detector="d",
                version="1",
                code="d.x",
                score=0.5,
                evidence=(Evidence(kind="d.x", path=SECRET, expected=SECRET, observed=SECRET),),
                models=(SECRET,),
                facts=(Fact("word", SECRET),),
            ),
        ),
        canaries=(SECRET,),
    ),
]


@pytest.mark.parametrize("event", PLANTED, ids=lambda event: type(event).__name__)
def test_a_secret_in_any_field_of_an_event_is_gone(event: AnyEvent) -> None:
    assert SECRET in shown(event)
    assert SECRET not in shown(redact_event(event, Forgetful()))
    assert SECRET not in shown(redact_event(event, Forgetful("another"), [SECRET]))
    assert "7f3a" not in shown(redact_event(event, DenyAll()))


@given(events())
def test_every_text_of_an_event_but_identifiers_has_passed_the_redactor(event: AnyEvent) -> None:
    redactor = RecordingRedactor(Forgetful())
    kept = msgspec.json.decode(redact_event(event, redactor), type=dict[str, object])
    plain = redaction.PLAIN_FIELDS
    passed = {str(Forgetful().text(text)) for text in redactor.texts}
    free = {key: value for key, value in kept.items() if key not in plain}
    names = set(free)
    assert all(word in passed or word in names or " [CUT: " in word for word in words(free))


def test_every_field_of_every_event_is_kept_plain_or_scrubbed_and_no_other_field_is_kept() -> None:
    for kind in get_args(AnyEvent):
        assert set(kind.__struct_fields__) <= redaction.PLAIN_FIELDS | redaction.NAME_FIELDS | redaction.TEXT_FIELDS | {
            "event"
        }
    assert redaction.Scrubber(Forgetful(), (), ()).member("fresh", "word") == "[REDACTED:UNKNOWN_FIELD]"


@given(events())
def test_a_redacted_event_says_what_kind_of_event_it_was_and_where(event: AnyEvent) -> None:
    kept = msgspec.json.decode(redact_event(event, DenyAll()), type=dict[str, object])
    whole = msgspec.json.decode(msgspec.json.encode(event), type=dict[str, object])
    assert kept.keys() == whole.keys()
    assert all(kept[key] == whole[key] for key in ("event", "session", "seq", "channel", "source"))


@pytest.mark.parametrize("number", [4111111111111111, 30.25])
def test_a_number_that_the_redactor_takes_for_a_secret_is_gone(number: float) -> None:
    call = ToolCallProposed(tool="t", arguments={"n": number, "other": 7, "flag": True, "none": None})
    kept = msgspec.json.decode(redact_event(call, Forgetful(str(number))), type=dict[str, object])
    assert kept["arguments"] == {"n": "[REDACTED:NUMBER]", "other": 7, "flag": True, "none": None}


@given(
    st.integers(0, 2 * EVENT_TEXT), st.sampled_from(["hunter2-7f3a", "4111 1111 1111 1111", "correct horse\nstaple"])
)
def test_a_cut_never_leaves_half_a_secret(place: int, secret: str) -> None:
    text = f"{'x y ' * EVENT_TEXT}"[:place] + secret + " and so on" * EVENT_TEXT
    kept = shown(redact_event(MessageObserved(role="user", text=text), Forgetful(secret)))
    said, cut, _ = kept.partition("[CUT: ")
    assert cut
    assert not any(secret[:size] in said for size in range(4, len(secret) + 1))


def test_a_long_text_keeps_its_beginning_and_says_how_long_it_was() -> None:
    text = "word " * 10_000
    kept = msgspec.json.decode(redact_event(GoalStated(text=text), Forgetful()), type=dict[str, object])
    assert kept["text"] == f"{text[:EVENT_TEXT]} [CUT: 50000 characters]"
    short = msgspec.json.decode(redact_event(GoalStated(text=text[:EVENT_TEXT]), Forgetful()), type=dict[str, object])
    assert short["text"] == text[:EVENT_TEXT]


def test_a_text_that_shrinks_beyond_the_cut_is_cut_there() -> None:
    text = "a" * (EVENT_TEXT - 4) + SECRET + "b" * EVENT_TEXT
    kept = msgspec.json.decode(redact_event(GoalStated(text=text), Forgetful()), type=dict[str, object])
    assert kept["text"] == f"{'a' * (EVENT_TEXT - 4)} [CUT: {len(text)} characters]"


class Eraser(DenyAll):
    """Takes all of a text away once it is long enough to be sure."""

    def text(self, value: str, secrets: Collection[str] = ()) -> Redacted:
        del secrets
        return Redacted(value if len(value) <= EVENT_TEXT else value[:100])


def test_what_a_longer_look_takes_away_is_not_kept() -> None:
    kept = msgspec.json.decode(redact_event(GoalStated(text="s" * 9000), Eraser()), type=dict[str, object])
    assert kept["text"] == f"{'s' * 100} [CUT: 9000 characters]"


def reading(**fields: object) -> Reading:
    return msgspec.convert(
        {"type": "Reading", "detector": "d", "version": "1", "code": "d.x", "score": 0.5, **fields}, Reading
    )


@given(st.one_of(readings(), failures()))
def test_no_text_of_an_answer_gets_past_deny_all(said: Reading | Failure) -> None:
    kept = redact(said, DenyAll())
    if isinstance(kept, Failure):
        assert kept.detail in {"", "[REDACTED:TEXT]"}
        return
    assert isinstance(said, Reading)
    assert (kept.score, kept.code, kept.surrogate) == (said.score, said.code, said.surrogate)
    assert [item.seqs for item in kept.evidence] == [item.seqs for item in said.evidence]
    quoted = {text for item in kept.evidence for text in (item.path, item.expected, item.observed)}
    assert quoted | set(kept.models) <= {"", "[REDACTED:TEXT]"}
    assert {fact.value for fact in kept.facts if isinstance(fact.value, str)} <= {"[REDACTED:UNKNOWN_FIELD]"}


def test_a_secret_in_any_field_of_an_answer_is_gone() -> None:
    said = reading(
        evidence=[{"kind": "d.x", "path": SECRET, "expected": SECRET, "observed": f"<{SECRET}>"}],
        models=[SECRET],
        facts=[["word", SECRET], ["kind", "odd"], ["rank", 3]],
    )
    kept = redact(said, Forgetful())
    assert SECRET not in shown(kept)
    assert kept.evidence[0].observed == "<[GONE]>"
    assert kept.facts == (Fact("word", "[REDACTED:UNKNOWN_FIELD]"), Fact("kind", "odd"), Fact("rank", 3.0))
    canary = redact(said, Forgetful("another"), [SECRET])
    assert SECRET not in shown(canary)


def test_what_holds_no_text_is_not_copied() -> None:
    quiet, failed = reading(), Failure(detector="d", version="1", cause=Cause.TIMEOUT)
    assert redact(quiet, DenyAll()) is quiet
    assert redact(failed, DenyAll()) is failed
    bare = Evidence(kind="d.x", seqs=(1,))
    assert redact(reading(evidence=[{"kind": "d.x", "seqs": [1]}]), DenyAll()).evidence == (bare,)


@given(st.integers(0, 2 * QUOTE))
def test_a_quotation_is_scrubbed_before_it_is_cut(place: int) -> None:
    observed = "." * place + SECRET + "." * QUOTE
    kept = redact(reading(evidence=[{"kind": "d.x", "observed": observed}]), Forgetful()).evidence[0].observed
    assert len(kept) <= QUOTE
    assert kept.endswith("\N{HORIZONTAL ELLIPSIS}")
    assert "hunt" not in kept


def test_the_detail_of_a_failure_is_scrubbed_and_cut_like_a_quotation() -> None:
    failed = Failure(detector="d", version="1", cause=Cause.ERROR, detail=f"{SECRET}: " + "x" * 100_000)
    kept = redact(failed, Forgetful()).detail
    assert kept.startswith("[GONE]: xxx")
    assert len(kept) == QUOTE


def test_deny_all_lets_nothing_through() -> None:
    redactor = DenyAll()
    assert (redactor.text(""), redactor.text("x", ["x"]), redactor.field("kind", "odd")) == (
        "",
        "[REDACTED:TEXT]",
        "[REDACTED:UNKNOWN_FIELD]",
    )


@pytest.mark.parametrize("word", ["string", "integer", "string or null", "array or object or boolean"])
def test_the_types_of_a_schema_pass_in_evidence_whatever_the_redactor(word: str) -> None:
    said = reading(evidence=[{"kind": "d.x", "expected": word, "observed": word}])
    assert redact(said, DenyAll()).evidence == said.evidence
    assert redact(said, DenyAll(), ["Null", "STRING", "object"]).evidence != said.evidence or word == "integer"


@pytest.mark.parametrize("word", ["strings", "String", " string", "string or bob", "string, null", " or ", "or"])
def test_what_is_no_type_passes_the_redactor(word: str) -> None:
    said = reading(evidence=[{"kind": "d.x", "expected": word, "observed": word}])
    (kept,) = redact(said, DenyAll()).evidence
    assert (kept.expected, kept.observed) == ("[REDACTED:TEXT]", "[REDACTED:TEXT]")


def test_a_path_is_a_name_and_no_type() -> None:
    assert redact(reading(evidence=[{"kind": "d.x", "path": "string"}]), DenyAll()).evidence[0].path != "string"
