"""Who hears of a finding: a callback of the host's, or else the log, whether calls are held or not."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from operator import attrgetter, methodcaller

import anyio
import pytest
from langchain import agents
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage

from theodolite import ConfigError, Decision, Monitor, Policy
from theodolite.core.event import AnyEvent
from theodolite.core.policy import Action
from theodolite.core.redaction import Redactor
from theodolite.detectors.anomaly.detector import AnomalyDetector
from theodolite.integrations import langchain
from theodolite.integrations.langchain import Middleware
from theodolite.redactors.rules import RuleRedactor
from theodolite.stores.memory import MemoryStore

Scripted = Callable[..., BaseChatModel]
CREATE: Callable[..., object] = attrgetter("create_agent")(agents)  # its own types leave much unknown

METADATA = "http://169.254.169.254/latest/meta-data/iam/security-credentials/"
FETCH = [("fetch", {"url": METADATA})]
PAGE = [("fetch", {"url": "https://example.org"})]


def fetch(url: str) -> str:
    """Fetch a page."""
    return f"a page of {len(url)}"


def run(
    model: BaseChatModel, watch: Middleware[object], thread: str | None = "t-1", *, loop: bool = False
) -> dict[str, object]:
    agent = CREATE(model, [fetch], middleware=[watch])
    given = {"messages": [HumanMessage("Fetch it")]}
    config = {"configurable": {"thread_id": thread}} if thread else {}

    async def awaited() -> dict[str, object]:
        state: dict[str, object] = await methodcaller("ainvoke", given, config)(agent)
        return state

    def called() -> dict[str, object]:
        state: dict[str, object] = methodcaller("invoke", given, config)(agent)
        return state

    return anyio.run(awaited) if loop else called()


def watching(*, store: MemoryStore | None = None, recorder: Callable[[AnyEvent], None] | None = None) -> Monitor:
    return Monitor([AnomalyDetector()], store=store, recorder=recorder)


@pytest.mark.parametrize("loop", [False, True])
@pytest.mark.parametrize("thread", [None, "t-1"])
@pytest.mark.parametrize("hold", [False, True])
def test_the_host_hears_of_a_finding_once(
    scripted: Scripted, caplog: pytest.LogCaptureFixture, thread: str | None, *, hold: bool, loop: bool
) -> None:
    heard: list[Decision] = []
    with Monitor([AnomalyDetector()], policy=Policy(hold=hold)) as monitor:
        run(scripted(PAGE, FETCH, "Done."), Middleware(monitor, on_decision=heard.append), thread, loop=loop)
    (decision,) = heard
    assert decision.allowed is not hold
    assert decision.action is Action.ELEVATED_REVIEW
    assert "anomaly.cloud_metadata" in [signal.code for signal in decision.signals if signal.alarmed]
    assert thread is None or decision.session == thread
    assert not caplog.records


def test_without_a_callback_a_finding_is_a_line_of_the_log(
    scripted: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    with watching() as monitor:
        run(scripted(FETCH, "Done."), Middleware(monitor), "t-\n1")
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("theodolite.integrations.langchain", logging.WARNING)
    said = record.getMessage()
    assert said.startswith("session 't-\\n1', event ")
    assert "anomaly.cloud_metadata 1.00" in said
    assert "action elevated_review, nothing was refused" in said
    assert said.endswith("theodolite explain anomaly.cloud_metadata")
    assert "169.254" not in said
    assert "fetch" not in said


def test_the_log_says_that_a_call_was_refused(scripted: Scripted, caplog: pytest.LogCaptureFixture) -> None:
    with Monitor([AnomalyDetector()], policy=Policy(hold=True)) as monitor:
        run(scripted(FETCH, "Done."), Middleware(monitor))
    (record,) = caplog.records
    assert "the call was refused" in record.getMessage()


def test_of_a_quiet_run_nobody_hears(scripted: Scripted, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Decision] = []
    with watching() as monitor:
        run(scripted(PAGE, "Done."), Middleware(monitor, on_decision=heard.append), "t-1")
        run(scripted(PAGE, "Done."), Middleware(monitor), "t-2")
    assert not heard
    assert not caplog.records


def test_a_call_that_is_refused_because_something_could_not_be_told_is_heard_of(
    scripted: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(event: AnyEvent) -> None:
        raise OSError(f"disk full at {event.seq}")

    heard: list[Decision] = []
    with Monitor([AnomalyDetector()], policy=Policy(fail_closed=True), recorder=broken) as monitor:
        run(scripted(PAGE, "Done."), Middleware(monitor, on_decision=heard.append), "t-1")
        run(scripted(PAGE, "Done."), Middleware(monitor), "t-2")
    assert [decision.allowed for decision in heard] == [False]
    (record,) = caplog.records
    assert "recorder.failure" in record.getMessage()
    assert "disk full" not in record.getMessage()


@pytest.mark.parametrize("hold", [False, True])
def test_a_callback_that_raises_breaks_nothing_and_the_log_has_the_finding(
    scripted: Scripted, caplog: pytest.LogCaptureFixture, *, hold: bool
) -> None:
    def broken(decision: Decision) -> None:
        raise LookupError(f"no channel for {decision.session}")

    store = MemoryStore()
    policy = Policy(hold=hold, fail_closed=True)
    with Monitor([AnomalyDetector()], store=store, policy=policy, redactor=RuleRedactor()) as monitor:
        state = run(scripted(FETCH, "Done."), Middleware(monitor, on_decision=broken))
    statuses = [getattr(message, "status", None) for message in attrgetter("__iter__")(state["messages"])()]
    assert ("error" in statuses) is hold
    (record,) = caplog.records
    said = record.getMessage()
    assert "anomaly.cloud_metadata" in said
    assert said.endswith("(on_decision failed: 'LookupError: no channel for t-1')")
    kept = b"".join(bytes(one.payload or b"") for one in store.read(session="t-1"))
    assert b'"failures":{"langchain":1}' in kept


def test_a_log_that_raises_lets_no_refused_call_through(scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError(f"no room for {record.name}")

    log = logging.getLogger("theodolite.integrations.langchain")
    monkeypatch.setattr(log, "handlers", [Broken()])
    with Monitor([AnomalyDetector()], policy=Policy(hold=True)) as monitor:
        state = run(scripted(FETCH, "Done."), Middleware(monitor))
    statuses = [getattr(message, "status", None) for message in attrgetter("__iter__")(state["messages"])()]
    assert "error" in statuses


def test_a_callback_may_ask_the_session_itself(scripted: Scripted) -> None:
    """It is called when nothing is held: it may use the middleware's own agent and session."""
    asked: list[int] = []
    with watching() as monitor:
        watch: Middleware[object]

        def again(decision: Decision) -> None:
            asked.append(decision.seq)
            if len(asked) == 1:
                run(scripted(PAGE, "Done."), watch, decision.session)

        watch = Middleware(monitor, on_decision=again)
        worker = threading.Thread(target=run, args=(scripted(FETCH, "Done."), watch), daemon=True)
        worker.start()
        worker.join(20)
        assert not worker.is_alive()
    assert asked


async def later(decision: Decision) -> None:
    del decision


async def one_by_one(decision: Decision) -> AsyncIterator[Decision]:
    yield decision


def step_by_step(decision: Decision) -> Iterator[Decision]:
    yield decision


def unseen(hears: Callable[[Decision], object]) -> Callable[[Decision], object]:
    """Hide what a callable returns from who only looks at it."""

    def plain(decision: Decision) -> object:
        return hears(decision)

    return plain


class Later:
    """Who hears only once it is awaited."""

    async def __call__(self, decision: Decision) -> None:
        await later(decision)


@pytest.mark.parametrize(
    "wrong", [later, partial(later), Later(), Later().__call__, one_by_one, step_by_step], ids=lambda it: repr(it)[:20]
)
def test_a_callback_that_would_have_to_be_awaited_is_named(wrong: object) -> None:
    make: Callable[..., object] = attrgetter("Middleware")(langchain)
    with pytest.raises(ConfigError, match=r"on_decision .*: nobody (awaits|runs) "):
        make(Monitor(), on_decision=wrong)


@pytest.mark.parametrize("loop", [False, True])
@pytest.mark.parametrize(
    "hears", [unseen(later), partial(Later()), unseen(step_by_step)], ids=["function", "object", "generator"]
)
@pytest.mark.filterwarnings("error")
def test_what_a_callback_leaves_undone_is_a_failure_and_the_log_has_the_finding(
    scripted: Scripted, caplog: pytest.LogCaptureFixture, hears: Callable[[Decision], object], *, loop: bool
) -> None:
    with Monitor([AnomalyDetector()], redactor=RuleRedactor()) as monitor:
        watch: Middleware[object] = attrgetter("Middleware")(langchain)(monitor, on_decision=hears)
        run(scripted(FETCH, "Done."), watch, loop=loop)
        assert monitor.session("t-1").coverage().failures == {"langchain": 1}
    (record,) = caplog.records
    assert "anomaly.cloud_metadata 1.00" in record.getMessage()
    assert "(on_decision failed: 'TypeError: it returned a " in record.getMessage()
    gc.collect()  # what was never awaited warns when it goes


def test_a_callback_may_return_anything_that_is_done(scripted: Scripted, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Decision] = []

    def hears(decision: Decision) -> object:
        heard.append(decision)
        return [decision]

    watch: Callable[..., Middleware[object]] = attrgetter("Middleware")(langchain)
    with watching() as monitor:
        run(scripted(FETCH, "Done."), watch(monitor, on_decision=hears))
    assert len(heard) == 1
    assert not caplog.records


@pytest.mark.parametrize("redactor", [None, RuleRedactor()])
def test_what_a_callback_raised_is_redacted_before_it_is_logged(
    scripted: Scripted, caplog: pytest.LogCaptureFixture, redactor: Redactor | None
) -> None:
    def broken(decision: Decision) -> None:
        raise LookupError(
            f"Authorization: Bearer sk-live-4f9a8c7e6d5b4a392817 of anna@example.org in {decision.session}"
        )

    with Monitor([AnomalyDetector()], redactor=redactor) as monitor:
        run(scripted(FETCH, "Done."), Middleware(monitor, on_decision=broken))
    (record,) = caplog.records
    said = record.getMessage()
    assert "anomaly.cloud_metadata" in said
    assert "(on_decision failed: '" in said
    assert "[REDACTED:" in said
    assert "4f9a8c7e" not in said
    assert "anna@" not in said


def test_what_cannot_be_called_here_is_named() -> None:
    make: Callable[..., object] = attrgetter("Middleware")(langchain)
    for wrong, said in (("print", "'print'"), (3, "3"), (object(), "object")):
        with pytest.raises(ConfigError, match=f"on_decision is a function that takes a decision, not {said}"):
            make(Monitor(), on_decision=wrong)


def test_a_callback_that_fails_each_time_is_counted_each_time(scripted: Scripted) -> None:
    heard: list[Decision] = []

    def broken(decision: Decision) -> None:
        heard.append(decision)
        raise SystemExit

    with watching() as monitor:
        run(scripted(FETCH, FETCH, "Done."), Middleware(monitor, on_decision=broken))
        session = monitor.session("t-1")
        assert len(heard) == 2
        assert session.coverage().failures == {"langchain": 2}
