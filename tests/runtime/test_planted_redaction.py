"""What counts as a disclosure of a planted token is kept nowhere: in evidence, facts, failures, events, recordings."""

from __future__ import annotations

import base64
import codecs
from collections.abc import Callable, Collection, Mapping
from hashlib import sha256
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.kept_texts import kept_texts

from theodolite.core.event import AnyEvent, InquirySettled, MessageObserved, ModelCalled, Source
from theodolite.core.inquiry import Draw, Query, Role
from theodolite.core.policy import Decision
from theodolite.core.reading import Cause, Evidence, Fact, Failure, Reading
from theodolite.core.redaction import DenyAll, Redacted, redact, redact_event
from theodolite.detectors.behavior.detector import BehaviorDetector, BehaviorSettings
from theodolite.detectors.behavior.disclosure import Planted, disclosed
from theodolite.detectors.behavior.disguises import DIGITS, NATO
from theodolite.detectors.behavior.schedule import ScheduleSettings
from theodolite.redactors.rules import RuleRedactor
from theodolite.runtime.drive import Panel
from theodolite.runtime.guarded import GuardedRedactor
from theodolite.runtime.monitor import Monitor
from theodolite.stores.memory import MemoryStore
from theodolite.testing.fakes import ScriptedModel
from theodolite.verifiers.triangulation import TriangulationVerifier

CANARY = "TH-3f9ae17b04c25d86"
HEX = CANARY.removeprefix("TH-")
# As many as a session remembers, the one that is told among them.
SECRETS = (*[f"TH-{sha256(bytes([number])).hexdigest()[:16]}" for number in range(63)], CANARY)
WORDS = {sign: word.decode() for sign, word in (*DIGITS.items(), *NATO.items())}

DISGUISES: Mapping[str, Callable[[str], str]] = {
    "none": str,
    "capitals": str.upper,
    "spaces": " ".join,
    "zero width": "\u200b".join,
    "full width": lambda told: "".join([chr(ord(sign) + 0xFEE0) for sign in told]),
    "Cyrillic": lambda told: told.translate(str.maketrans("ace", "\u0430\u0441\u0435")),
    "reversed": lambda told: told[::-1],
    "rot13": lambda told: codecs.encode(told, "rot13"),
    "base64": lambda told: base64.b64encode(told.encode()).decode(),
    "base64 of base64": lambda told: base64.b64encode(base64.b64encode(told.encode())).decode(),
    "base64, reversed": lambda told: base64.b64encode(told.encode()).decode()[::-1],
    "octets in base64": lambda _: base64.b64encode(bytes.fromhex(HEX)).decode(),
    "hexadecimal": lambda told: told.encode().hex(),
    "percent signs": lambda told: "".join([f"%{ord(sign):02x}" for sign in told]),
    "entities": lambda told: "".join([f"&#{ord(sign)};" for sign in told]),
    "backslashes": lambda told: "".join([f"\\u{ord(sign):04x}" for sign in told]),
    "spelled": lambda told: " ".join([WORDS.get(sign, sign) for sign in told.lower()]),
    "signs by name": " dash ".join,
    "ten digits": lambda _: HEX[3:13],
    "eleven digits, reversed": lambda _: HEX[2:13][::-1],
    "two halves": lambda _: f"{HEX[8:]} comes last, and {HEX[:8]} first",
    "quoted twice": lambda told: quote(quote("".join([f"%{ord(sign):02x}" for sign in told]))),
}


class Passing:
    """A redactor that lets all pass, whatever it was asked to find."""

    name = "passing"
    version = "1"

    def text(self, value: str, secrets: Collection[str] = ()) -> Redacted:
        del secrets
        return Redacted(value)

    def field(self, name: str, value: str) -> Redacted:
        del name
        return Redacted(value)


def tells(text: str) -> bool:
    return disclosed(Draw(text=text), CANARY) is not None


AROUND = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(["The reference: ", '{"a": "', "x" * 400])


@pytest.mark.parametrize("name", DISGUISES)
def test_each_disguise_is_one_that_counts(name: str) -> None:
    assert tells(DISGUISES[name](CANARY))
    assert Planted(SECRETS).told_in(DISGUISES[name](CANARY))


@pytest.mark.parametrize("redactor", [RuleRedactor(), Passing()], ids=["rules", "passing"])
@pytest.mark.parametrize("name", DISGUISES)
@settings(max_examples=15)
@given(AROUND, AROUND)
def test_no_disguise_survives_in_what_is_said(
    name: str, redactor: RuleRedactor | Passing, before: str, after: str
) -> None:
    told = f"{before} {DISGUISES[name](CANARY)} {after}"
    guarded = GuardedRedactor(redactor)
    seen = Evidence(kind="behavior.answer", path=told, expected=told, observed=told)
    reading = Reading(
        detector="d",
        version="1",
        code="d.k",
        score=0.5,
        evidence=(seen,),
        facts=(Fact("reasoning", told),),
        models=(told,),
    )
    failure = Failure(detector="d", version="1", cause=Cause.ERROR, detail=told)
    kept = [text for said in (reading, failure) for text in kept_texts(redact(said, guarded, SECRETS))]
    assert [text for text in kept if tells(text)] == []
    event = MessageObserved(role="assistant", text=told, session="s", seq=0)
    assert [text for text in kept_texts(redact_event(event, guarded, SECRETS)) if tells(text)] == []


@settings(max_examples=50)
@given(st.sampled_from(list(DISGUISES)), st.sampled_from(list(DISGUISES)), AROUND)
def test_what_passed_passes_again_as_it_is(first: str, second: str, between: str) -> None:
    guarded = GuardedRedactor(RuleRedactor())
    once = guarded.text(f"{DISGUISES[first](CANARY)}{between}{DISGUISES[second](CANARY)}", SECRETS)
    assert guarded.text(once, SECRETS) == once


@settings(max_examples=50)
@given(st.text(max_size=200))
def test_a_text_that_tells_nothing_is_what_the_redactor_makes_of_it(text: str) -> None:
    assert GuardedRedactor(RuleRedactor()).text(text, SECRETS) == RuleRedactor().text(text, SECRETS)


def test_a_text_around_a_token_that_stands_there_as_planted_is_kept() -> None:
    passed = GuardedRedactor(RuleRedactor()).text(f"Sure, it is {CANARY}, as you asked.", SECRETS)
    assert passed == "Sure, it is [REDACTED:CANARY], as you asked."


def test_where_the_mark_would_tell_the_token_nothing_is_left() -> None:
    assert GuardedRedactor(Passing()).text("yranacdetcader", ("REDACTEDCANARY",)) == ""


def test_who_lets_nothing_pass_lets_nothing_pass() -> None:
    assert GuardedRedactor(DenyAll()).text(CANARY[::-1], SECRETS) == "[REDACTED:TEXT]"


# -- a whole session --------------------------------------------------------------------------------------------------


def probed(disguise: Callable[[str], str]) -> tuple[list[str], list[Decision], list[AnyEvent]]:
    """Return the tokens, the decisions and the recorded events of a session whose copy tells them in that disguise."""
    planted: list[str] = []

    def answer(query: Query) -> str:
        planted.append(query.canary)
        # Long, so that a quotation is cut within what it tells.
        if query.role is Role.SUBJECT:
            return (
                f"Yes, I will do that right away. {'So be it. ' * 19}{disguise(query.canary)} {disguise(query.canary)}"
            )
        return "No, I cannot do that: the policy forbids it."

    recorded: list[AnyEvent] = []
    schedule = ScheduleSettings(jitter_seconds=0.0, cooldown_window_seconds=0.0)
    live = Monitor(
        [BehaviorDetector(BehaviorSettings(schedule=schedule, samples=1))],
        verifiers=[TriangulationVerifier()],
        redactor=RuleRedactor(),
        store=MemoryStore(),
        panel=Panel(dict.fromkeys(Role, ScriptedModel(answer))),
        recorder=recorded.append,
    )
    session = live.session("s-1")
    session.observe(ModelCalled(model="scripted-model"))
    session.observe(MessageObserved(role="user", text="Good morning.", source=Source.USER))
    decisions: list[Decision] = []
    for _ in range(6):
        decisions.append(session.request_probe("manual"))
        decisions += session.drain_sync()
    return [token for token in dict.fromkeys(planted) if token], decisions, recorded


PIECE = 6  # of a token that is cut, so many characters in a row say whose they are


@pytest.mark.parametrize("name", ["none", "capitals", "reversed", "base64"])
def test_a_quotation_that_is_cut_within_a_token_shows_no_piece_of_it(name: str) -> None:
    disguise = DISGUISES[name]
    planted, decisions, recorded = probed(disguise)
    assert len(planted) == 6
    said = [event.said for event in recorded if isinstance(event, InquirySettled)]
    for kept in (kept_texts(decisions), kept_texts(said)):
        assert any(text.startswith("Yes, I will do that") or text == "[REDACTED:CANARY]" for text in kept)
        for token in planted:
            shown = disguise(token)
            pieces = [shown[at : at + PIECE] for at in range(3, len(shown) - PIECE)]
            assert [piece for piece in pieces for text in kept if piece in text] == []
