"""What fails in the middleware, and what is asked of it wrongly."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Coroutine
from operator import attrgetter, methodcaller
from pathlib import Path

import anyio
import pytest
from langchain import agents
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool

from theodolite import CallBlocked, Channel, ConfigError, Monitor, Policy, Source, ToolCallProposed, ToolsDeclared
from theodolite.core.errors import HarnessError
from theodolite.core.event import AnyEvent
from theodolite.core.reading import Failure
from theodolite.integrations import langchain
from theodolite.integrations.langchain import Middleware
from theodolite.redactors.rules import RuleRedactor
from theodolite.runtime.session import Session
from theodolite.stores.memory import MemoryStore

Scripted = Callable[..., BaseChatModel]
CREATE: Callable[..., object] = attrgetter("create_agent")(agents)  # its own types leave much unknown
CALL = [("look", {"at": "it"})]


class Unreadable(BaseTool):
    """A tool that runs, and whose schema cannot be read."""

    name: str = "look"
    description: str = "Look."

    @property
    def tool_call_schema(self) -> type:
        raise ValueError("no schema today")

    def _run(self, at: str) -> str:
        return f"looked at {at}"


def look(at: str) -> str:
    """Look."""
    return f"looked at {at}"


def ask(agent: object, *given: BaseMessage, thread: str = "t-1") -> list[BaseMessage]:
    state: dict[str, list[BaseMessage]] = methodcaller(
        "invoke", {"messages": list(given)}, {"configurable": {"thread_id": thread}}
    )(agent)
    return state["messages"]


def run(model: BaseChatModel, tool: object, watch: Middleware[object], thread: str = "t-1") -> ToolMessage:
    messages = ask(CREATE(model, [tool], middleware=[watch]), HumanMessage("Look"), thread=thread)
    (result,) = [message for message in messages if isinstance(message, ToolMessage)]
    return result


def test_what_cannot_be_told_is_a_failure_of_the_session_and_the_agent_goes_on(scripted: Scripted) -> None:
    store = MemoryStore()
    with Monitor(store=store) as monitor:
        assert run(scripted(CALL, "Done."), Unreadable(), Middleware(monitor)).content == "looked at it"
    assert b"langchain" in b"".join(bytes(record.payload or b"") for record in store.read(session="t-1"))


def test_where_the_policy_fails_closed_nothing_runs_in_a_thread_that_could_not_be_told(scripted: Scripted) -> None:
    with Monitor(policy=Policy(fail_closed=True)) as monitor:
        result = run(scripted(CALL, "Done."), Unreadable(), Middleware(monitor))
        assert result.status == "error"
        assert result.content == "This tool call was refused by policy and did not run (langchain.failure)."
        with pytest.raises(CallBlocked) as blocked:
            run(scripted(CALL, "Done."), Unreadable(), Middleware(monitor, on_refusal="raise"))
        assert isinstance(blocked.value.decision.signals[-1].said, Failure)
        assert run(scripted(CALL, "Done."), look, Middleware(monitor), "t-2").status == "success"


@pytest.mark.parametrize("closed", [False, True])
def test_without_a_session_it_warns_and_the_policy_says_what_then(scripted: Scripted, *, closed: bool) -> None:
    monitor = Monitor(policy=Policy(fail_closed=closed))
    monitor.close()
    with pytest.warns(RuntimeWarning, match="theodolite could not look at an agent: 'the monitor is closed"):
        result = run(scripted(CALL, "Done."), look, Middleware(monitor))
    assert result.status == ("error" if closed else "success")
    assert Middleware(monitor).coverage().fails_open is not closed


def test_an_interrupt_from_the_keyboard_passes(scripted: Scripted) -> None:
    def stop(event: AnyEvent) -> None:
        if isinstance(event, ToolsDeclared):
            raise KeyboardInterrupt

    with Monitor(recorder=stop) as monitor, pytest.raises(KeyboardInterrupt):
        run(scripted(CALL, "Done."), look, Middleware(monitor))


def test_a_session_that_was_closed_is_told_the_thread_anew(scripted: Scripted) -> None:
    seen: list[AnyEvent] = []
    with Monitor(recorder=seen.append) as monitor:
        agent = CREATE(scripted("Hello."), [], middleware=[Middleware(monitor)])
        messages = ask(agent, HumanMessage("Hello"))
        first = [type(event) for event in seen]
        monitor.session("t-1").close()
        seen.clear()
        ask(agent, *messages)
    assert [type(event) for event in seen][: len(first)] == first


def test_what_it_does_not_take_is_named() -> None:
    make: Callable[..., object] = attrgetter("Middleware")(langchain)
    with pytest.raises(ConfigError, match=r"takes a Monitor, not str: theodolite\.load\(\) makes one"):
        make("theodolite.toml")
    with pytest.raises(ConfigError, match="on_refusal is 'message' or 'raise', not 'shrug'"):
        make(Monitor(), on_refusal="shrug")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"agent": 3}, "agent is the id of the agent, as text, not int: "),
        ({"agent": None}, "agent is the id of the agent, as text, not NoneType: "),
        ({"on_refusal": []}, "on_refusal is 'message' or 'raise', not list"),
        ({"on_refusal": "x" * 400}, "on_refusal is 'message' or 'raise', not 'x{20}\N{HORIZONTAL ELLIPSIS}'$"),
        ({"on_refusal": None}, "on_refusal is 'message' or 'raise', not None"),
        ({"carriers": 3}, "carriers says by channel how a token is put there, .*, not int: "),
        ({"carriers": [Channel.USER_TEXT]}, "carriers says by channel how a token is put there, .*, not list: "),
        ({"carriers": {3: print}}, "carriers: 3 is no channel: "),
        ({"carriers": {Channel.USER_TEXT: "print"}}, "carriers: .* user_text is a function that takes it, not 'print'"),
        ({"carriers": {Channel.USER_TEXT: anyio.sleep}}, "carriers: .* not a coroutine function: nobody awaits it"),
    ],
)
def test_what_is_of_a_wrong_type_is_refused_before_an_agent_runs(wrong: dict[str, object], said: str) -> None:
    make: Callable[..., object] = attrgetter("Middleware")(langchain)
    with pytest.raises(ConfigError, match=said):
        make(Monitor(), **wrong)


def test_a_carrier_that_would_have_to_be_awaited_has_planted_nothing() -> None:
    def plant(token: str) -> Coroutine[object, object, None]:
        return anyio.sleep(len(token))

    watch: Middleware[object] = attrgetter("Middleware")(langchain)(Monitor(), carriers={Channel.USER_TEXT: plant})
    with pytest.raises(HarnessError, match="the carrier of user_text returned a coroutine, which nobody awaits"):
        watch.plant(Channel.USER_TEXT, "canary")


def test_a_channel_may_be_named_by_its_word() -> None:
    planted: list[str] = []
    watch: Middleware[object] = attrgetter("Middleware")(langchain)(Monitor(), carriers={"user_text": planted.append})
    watch.plant(Channel.USER_TEXT, "canary")
    assert planted == ["canary"]


def test_a_warning_shows_what_others_raised_only_redacted(scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Monitor, session: str, *, agent: str = "") -> Session:
        del self
        raise LookupError(f"Bearer sk-live-4f9a8c7e6d5b4a392817 of anna@example.org: {session} {agent}")

    monkeypatch.setattr(Monitor, "session", broken)
    with pytest.warns(RuntimeWarning, match="theodolite could not look at an agent: ") as warned:
        run(scripted(CALL, "Done."), look, Middleware(Monitor(redactor=RuleRedactor())))
    for warning in warned:
        assert "LookupError" in str(warning.message)
        assert "[REDACTED:" in str(warning.message)
        assert "4f9a8c7e" not in str(warning.message)
        assert "anna@" not in str(warning.message)


def test_it_plants_only_where_a_harness_says_how() -> None:
    planted: list[str] = []
    watch = Middleware(Monitor(), carriers={Channel.USER_TEXT: planted.append, Channel.REASONING: planted.append})
    watch.plant(Channel.USER_TEXT, "canary")
    assert planted == ["canary"]
    for channel in (Channel.TOOL_RESULT_TEXT, Channel.REASONING):
        with pytest.raises(HarnessError, match=r"pass one in `carriers` \(known: user_text\)"):
            watch.plant(channel, "canary")
    assert planted == ["canary"]


def test_without_langchain_the_extra_is_named_and_theodolite_works(tmp_path: Path) -> None:
    (tmp_path / "langchain.py").write_text("raise ImportError('not here')\n", encoding="utf-8")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import theodolite\n"
        "assert not {'langchain', 'langchain_core', 'langgraph'} & set(sys.modules)\n"
        "try: import theodolite.integrations.langchain\n"
        "except theodolite.MissingExtraError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.stdout.strip().endswith("pip install 'theodolite[langchain]'"), done.stderr


def test_wrong_arguments_of_a_model_are_still_a_call(scripted: Scripted) -> None:
    seen: list[AnyEvent] = []
    with Monitor(recorder=seen.append) as monitor:
        run(
            scripted([("look", {"at": float("nan"), "deep": {"a": {1: b"bytes"}}})], "Done."), look, Middleware(monitor)
        )
    (call,) = [event for event in seen if isinstance(event, ToolCallProposed)]
    assert call.source is Source.MODEL
    assert [foreign.type for foreign in call.foreign]
