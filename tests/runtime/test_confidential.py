"""The operator's system prompt is given to models, and kept nowhere: whoever says it again."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.kept_texts import kept_texts

from theodolite.core.errors import ConfigError, ModelError
from theodolite.core.event import (
    AnyEvent,
    InquirySettled,
    MessageObserved,
    ModelCalled,
    SessionEnded,
    Source,
    ToolCallProposed,
)
from theodolite.core.inquiry import Query, Role
from theodolite.core.policy import Decision
from theodolite.core.reading import Failure
from theodolite.detectors.behavior.detector import BehaviorDetector, BehaviorSettings
from theodolite.detectors.behavior.schedule import ScheduleSettings
from theodolite.redactors.rules import RuleRedactor
from theodolite.runtime.confidential import MARK, Confidential, confidential_of
from theodolite.runtime.drive import Panel
from theodolite.runtime.guarded import GuardedRedactor
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.prober import Prober
from theodolite.runtime.replay import Sighting, replay
from theodolite.stores.memory import MemoryStore
from theodolite.testing.fakes import QuietDetector, ScriptedDetector, ScriptedModel
from theodolite.testing.sessions import stamped

PROMPT = (
    "You are the clerk of Meridian Savings, branch forty-four.\n\nNever mention the merger with Halcyon before March. "
    "Refunds above 250 euros go to Petra in the back office; her door code is the year in which the bank was founded. "
    "If it is so, do as I say to do it, and be of good cheer."
)
WORDS = re.findall(r"\w+", PROMPT.lower())
AT_ONCE = ScheduleSettings(jitter_seconds=0.0, cooldown_window_seconds=0.0)


def repeats(text: str) -> list[str]:
    """Return the runs of eight words of the prompt, and of 50 of its characters, that a text holds."""
    said = " ".join(re.findall(r"\w+", text.lower()))
    runs = [" ".join(WORDS[at : at + 8]) for at in range(len(WORDS) - 7)]
    close, all_close = "".join(said.split()), PROMPT.lower()
    parts = ["".join(re.findall(r"\w+", all_close[at : at + 50])) for at in range(len(all_close) - 49)]
    return [run for run in runs if run in said] + [part for part in parts if part in close]


def report(reasoning: str) -> str:
    """Return an answer in the form that is asked for."""
    flags = dict.fromkeys(("disclosed_data", "policy_cited", "escalation_suggested", "tool_call_attempted"), False)
    return json.dumps({"decision": "comply", "reasoning": reasoning, **flags})


def refused(query: Query) -> ModelError:
    return ModelError(f"the provider refuses this prompt: {query.system}")


ECHOES: dict[str, Callable[[Query], str | Exception]] = {
    "whole": lambda query: report(query.system),
    "in words": lambda query: f"Sure. I was told: {query.system}",
    "in capitals": lambda query: report(query.system.upper()),
    "in other lines": lambda query: report(re.sub(r"\s+", " \n ", query.system)),
    "eight words": lambda _: report(f"They say: {' '.join(WORDS[12:20])}."),
    "letter by letter": lambda _: report(" ".join(PROMPT)),
    "behind much else": lambda query: report("x " * 2_030 + query.system),
    "as JSON in a reason": lambda query: report(json.dumps({"system": query.system})),
    "refused by the provider": refused,
}


def monitor(echo: Callable[[Query], str | Exception], recorded: list[AnyEvent], *, judge: bool = False) -> Monitor:
    return Monitor(
        [
            BehaviorDetector(BehaviorSettings(system=PROMPT, schedule=AT_ONCE, judge=judge)),
            ScriptedDetector(script={MessageObserved: 0.95, ToolCallProposed: 0.95}),
        ],
        redactor=RuleRedactor(),
        store=MemoryStore(),
        panel=Panel(dict.fromkeys(Role, ScriptedModel(echo))),
        recorder=recorded.append,
    )


@pytest.mark.parametrize("name", ECHOES)
def test_a_model_that_says_its_system_prompt_brings_it_nowhere(name: str, caplog: pytest.LogCaptureFixture) -> None:
    recorded: list[AnyEvent] = []
    live = monitor(ECHOES[name], recorded, judge=True)
    store = live.fleet.store
    assert isinstance(store, MemoryStore)
    decisions: list[Decision] = []
    with caplog.at_level(logging.DEBUG), live:
        session = live.session("s-1")
        decisions.append(session.observe(ModelCalled(model="scripted-model")))
        decisions.append(session.observe(MessageObserved(role="user", text="Good morning.", source=Source.USER)))
        for _ in range(3):
            decisions.append(session.request_probe("manual"))
            decisions += session.drain_sync()
        saved = session.save().decode()
    assert sum(isinstance(event, InquirySettled) for event in recorded) == 3
    kept = [*kept_texts(decisions), *kept_texts(list(store.read())), *kept_texts(recorded), saved, caplog.text]
    assert any(MARK in text for text in kept)
    assert [run for text in kept for run in repeats(text)] == []


def test_what_the_agent_itself_says_of_it_is_not_kept_or_shown() -> None:
    recorded: list[AnyEvent] = []
    live = monitor(lambda _: "no", recorded)
    store = live.fleet.store
    assert isinstance(store, MemoryStore)
    events: list[AnyEvent] = [
        MessageObserved(role="user", text=f"Is this your prompt? {PROMPT}", source=Source.USER),
        MessageObserved(role="assistant", text=f"It is {PROMPT.upper()}", source=Source.MODEL),
        ToolCallProposed(tool="send_mail", arguments={"body": PROMPT, PROMPT: [{"deep": PROMPT}]}),
        ToolCallProposed(tool=PROMPT, arguments={}),
        SessionEnded(),
    ]
    with live, Prober(live.fleet.panel, reason="test") as prober:
        seen = list(replay(stamped(events), live, prober))
    assert all(isinstance(one, Sighting) for one in seen)
    kept = [*kept_texts(seen), *kept_texts(list(store.read()))]
    assert sum(MARK in text for text in kept) >= 6
    assert [run for text in kept for run in repeats(text)] == []


@given(
    st.integers(0, len(WORDS) - 8), st.integers(8, 40), st.sampled_from([" ", "\n", "  --  ", "\t", "\u00a0", "\\n"])
)
def test_a_run_of_eight_words_is_hidden_as_far_as_it_goes(start: int, count: int, between: str) -> None:
    words = WORDS[start : start + count]
    run, capitals = between.join(words), between.join([word.title() for word in words])
    hidden = Confidential([PROMPT]).hidden(f"Well, {run} {capitals} indeed")
    assert hidden in {f"Well, {MARK} {MARK} indeed", f"Well, {MARK} indeed"}


@given(st.integers(0, len(PROMPT) - 50), st.integers(50, 120))
def test_a_run_of_fifty_characters_is_hidden(start: int, size: int) -> None:
    run = PROMPT[start : start + size]
    for told in (run, run.upper(), " ".join(run), "".join(run.split())):
        assert repeats(Confidential([PROMPT]).hidden(f"= {told} =")) == []


@given(st.text(max_size=300))
def test_other_texts_are_left_as_they_are_and_what_was_hidden_stays_as_it_is(text: str) -> None:
    held = Confidential([PROMPT])
    assert held.hidden(text) == text
    once = held.hidden(f"{text}{PROMPT}{text}")
    assert held.hidden(once) == once
    assert repeats(once) == []


def test_seven_words_are_a_turn_of_speech() -> None:
    said = "if it is so, do as I"
    assert Confidential([PROMPT]).hidden(said) == said


@pytest.mark.parametrize(
    ("prompt", "said", "shown"),
    [
        ("Never speak of it.", "so NEVER  speak of it, please", f"so {MARK}, please"),
        ("Never speak of it.", "never speak of us", "never speak of us"),
        ("You help.", "you help", "you help"),
        ("\u00dcber die Fusion schweigen wir.", "\u00fcBER DIE FUSION schweigen WIR!", f"{MARK}!"),
        ("\uff28\uff41\uff4c\uff43\uff59\uff4f\uff4e buys us", "halcyon buys us", MARK),
        ("", "anything", "anything"),
        ("-----", "-----", "-----"),
    ],
)
def test_of_a_short_text_all_of_it_is_hidden_and_of_a_tiny_one_nothing(prompt: str, said: str, shown: str) -> None:
    assert Confidential([prompt]).hidden(said) == shown


def test_several_texts_are_hidden_each() -> None:
    held = Confidential([PROMPT, "The vault opens at nine tomorrow."])
    assert held.hidden(f"the vault opens at nine tomorrow; {PROMPT}") == f"{MARK}; {MARK}."


def test_a_field_that_is_free_text_is_hidden_too() -> None:
    guarded = GuardedRedactor(RuleRedactor(), Confidential([PROMPT]))
    assert guarded.field("reasoning", PROMPT) == f"{MARK}."
    assert guarded.field("decision", "comply") == "comply"


def test_a_part_that_names_no_texts_is_refused() -> None:
    class Broken(QuietDetector):
        confidential = PROMPT

    with pytest.raises(ConfigError, match=r"Broken\.confidential is a tuple of texts"):
        Monitor([Broken()])
    assert confidential_of([QuietDetector(), BehaviorDetector()]).hidden(PROMPT) == PROMPT


def test_who_is_judged_by_a_stranger_does_not_show_it_the_prompt() -> None:
    shown: list[str] = []

    def answer(query: Query) -> str:
        if query.role is Role.JUDGE:
            shown.extend(message.text for message in query.context or ())
        return report(PROMPT)

    live = monitor(answer, [], judge=True)
    session = live.session("s-1")
    session.observe(ModelCalled(model="scripted-model"))
    session.observe(MessageObserved(role="user", text="Good morning.", source=Source.USER))
    session.request_probe("manual")
    session.drain_sync()
    assert len(shown) == 3
    assert [run for text in shown for run in repeats(text)] == []


def test_a_provider_that_quotes_the_question_is_not_quoted_outside_of_a_session_either() -> None:
    asked = Query(role=Role.BASELINE, system=PROMPT, prompt="Where is the door?")
    panel = Panel({Role.BASELINE: ScriptedModel(refused)})
    (answer,) = anyio.run(panel.ask_all, (asked,))
    assert isinstance(answer, Failure)
    assert answer.detail.startswith("baseline: ")
    assert MARK in answer.detail
    assert repeats(answer.detail) == []
