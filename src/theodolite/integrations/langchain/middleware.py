"""The middleware: LangChain's hooks on one side, sessions of a Monitor on the other."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypeVar
from weakref import WeakKeyDictionary

from anyio import to_thread
from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ContextT, PrivateStateAttr, ResponseT
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime
from langgraph.types import Command
from msgspec.structs import replace

from theodolite.core.errors import CallBlocked, ConfigError, EventError, HarnessError
from theodolite.core.event import AnyHostEvent, Channel, SessionEnded, Source, ToolCallProposed
from theodolite.core.integration import Claims
from theodolite.core.policy import Decision
from theodolite.core.reading import Cause, Failure, Signal
from theodolite.core.redaction import Scrubber
from theodolite.integrations.langchain.conversation import Conversation, proposed
from theodolite.integrations.langchain.given import (
    agent_in,
    carriers_in,
    finishing,
    monitor_in,
    raises_in,
    undone,
)
from theodolite.integrations.langchain.notice import logged, loud
from theodolite.integrations.langchain.whereabouts import RUN, messages_in, thread, whereabouts
from theodolite.runtime.answers import attempted
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.session import Session

__all__ = ("Middleware", "Watched")

_NAME, _VERSION = "langchain", "1"
_SEES = frozenset(
    {
        Channel.TOOL_DEFINITION,
        Channel.USER_TEXT,
        Channel.USER_PART,
        Channel.ASSISTANT_TEXT,
        Channel.ASSISTANT_PART,
        Channel.REFUSAL,
        Channel.TOOL_CALL_OBJECT,
        Channel.TOOL_RESULT_TEXT,
        Channel.TOOL_RESULT_PART,
    }
)

_HEARS = "on_decision is a function that takes a decision"

_T = TypeVar("_T")


class Watched(AgentState[Any]):  # of whatever the agent is to answer
    """The state of an agent, and the name of a run that belongs to no thread; only this middleware sees that."""

    theodolite_run: NotRequired[Annotated[str, PrivateStateAttr]]


class _Place(NamedTuple):
    session: Session
    conversation: Conversation
    lasting: bool


class _Ours(NamedTuple):
    """What is wrong in words of our own, which need no redaction: they name ids, as every line of the log does."""

    why: str


def _or_our_word(act: Callable[[], _T]) -> _T | _Ours:
    try:
        return act()
    except (ConfigError, EventError) as error:
        return _Ours(str(error))


class Middleware(AgentMiddleware[AgentState[ResponseT], ContextT, ResponseT]):
    """Watches an agent that `create_agent` made: its messages become events, and a refused call does not run.

    Put it last in the list of middleware: what stands after it can alter a call that was judged. It serves any number
    of agents, threads and event loops at once.

    - A session is a thread (`configurable.thread_id`), and stays open. A run without one is a session of its own, and
      ends with the run; so is a sub-agent that runs inside a tool call: what asks it is the model's, and no goal.
    - Each message is told once, in the order in which it stands in the thread, by the same events as a recording of it.
      Calls are judged in that order, before the first of them runs, and once more if something altered them since.
    - A refused call is answered by a ToolMessage with the status "error" that names the codes. With
      `on_refusal="raise"` CallBlocked leaves the run instead.
    - Whoever is in charge hears of a finding through `on_decision`, whether calls are refused or not: it is called with
      each decision that refuses a call, or in which an alarm is a finding or asks for an action, once, in the thread
      that judged it and before the call runs. Where none is given, each is a WARNING of the log
      `theodolite.integrations.langchain`, with codes and scores and no content. What it raises is a failure of the
      session, and the finding goes to the log; so does one whose callback returns something to await, which nobody
      does here. What models answer later, outside of a run, is not told here.
    - A tool that raises is told as a failed result without text, and raises.
    - What fails in here is told with the session's next decision, or is a RuntimeWarning where there is no session, and
      the agent goes on; with the policy's `fail_closed` no call runs in a thread of which something could not be told.

    Not seen: attached images, audio and files but that they are there, artifacts of tools, reasoning, tools that run at
    the provider, calls that tools make by themselves, and what middleware shows the model without keeping it in the
    thread. Streamed text reaches its reader before it is judged; calls do not run before they are.

    `agent` is the id of the agent in every session. In a harness `carriers` says how a token is put on a channel of
    that host, for `plant`. Cost: that of `observe`, and a hash for each message of the thread at each call. In an event
    loop all of that is done in a thread, since a refusal waits for the disk. State: see Conversation.

    Raises ConfigError for what is no Monitor, an `agent` that is no text, another `on_refusal`, `carriers` that are no
    mapping of channels, and where one of these or `on_decision` cannot be called here, or would have to be awaited.
    """

    def __init__(
        self,
        monitor: Monitor,
        *,
        agent: str = "",
        on_refusal: Literal["message", "raise"] = "message",
        on_decision: Callable[[Decision], None] | None = None,
        carriers: Mapping[Channel, Callable[[str], None]] | None = None,
    ) -> None:
        super().__init__()
        self.state_schema = Watched
        self.tools = ()
        self._monitor = monitor_in(monitor)
        self._agent = agent_in(agent)
        self._raises = raises_in(on_refusal)
        self._hears = None if on_decision is None else finishing(on_decision, _HEARS)
        self._carriers = {} if carriers is None else carriers_in(carriers)
        self._lock = Lock()
        self._conversations: WeakKeyDictionary[Session, Conversation] = WeakKeyDictionary()

    @property
    def name(self) -> str:
        """The name of its nodes in the graph."""
        return "theodolite"

    def coverage(self) -> Claims:
        """Return the channels whose text it sees, and that it stops calls."""
        return Claims(sees=_SEES, stops_calls=True, fails_open=not self._monitor.fleet.policy.fail_closed)

    def enforce(self, decision: Decision) -> None:
        """Raise CallBlocked for a decision that refuses."""
        if not decision.allowed:
            raise CallBlocked(decision)

    def plant(self, channel: Channel, token: str) -> None:
        """Put a token on a channel by its carrier. Raises HarnessError where there is none."""
        if channel not in self._carriers or channel not in _SEES:
            known = ", ".join(sorted(_SEES & self._carriers.keys())) or "none was given"
            raise HarnessError(f"no carrier puts a token on {channel.value}: pass one in `carriers` (known: {known})")
        left = undone(self._carriers[channel](token))
        if left:
            raise HarnessError(f"the carrier of {channel.value} {left}: pass one that has planted when it returns")

    def before_agent(self, state: AgentState[ResponseT], runtime: Runtime[ContextT]) -> dict[str, object] | None:
        """Begin a run, and name it where it belongs to no thread."""
        del runtime
        if thread() is None:
            return {RUN: f"run-{uuid.uuid4().hex}"}
        self._attempt(lambda: self._begin(state), None)
        return None

    async def abefore_agent(self, state: AgentState[ResponseT], runtime: Runtime[ContextT]) -> dict[str, object] | None:
        """Do as `before_agent` does, off the event loop."""
        return await to_thread.run_sync(self.before_agent, state, runtime)

    def wrap_model_call(
        self, request: ModelRequest[ContextT], handler: Callable[[ModelRequest[ContextT]], ModelResponse[ResponseT]]
    ) -> ModelResponse[ResponseT] | AIMessage:
        """Tell what the model is about to read, then ask it."""
        self._attempt(lambda: self._before_model(request), None)
        return handler(request)

    async def awrap_model_call(
        self,
        request: ModelRequest[ContextT],
        handler: Callable[[ModelRequest[ContextT]], Awaitable[ModelResponse[ResponseT]]],
    ) -> ModelResponse[ResponseT] | AIMessage:
        """Do as `wrap_model_call` does, off the event loop."""
        await to_thread.run_sync(lambda: self._attempt(lambda: self._before_model(request), None))
        return await handler(request)

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[object]]
    ) -> ToolMessage | Command[object]:
        """Run a call unless it is refused. Raises CallBlocked, if it was told to."""
        refusal = self._refusal(request)
        if refusal is not None:
            return refusal
        try:
            return handler(request)
        except GraphBubbleUp:  # how LangGraph interrupts a run: nothing failed
            raise
        except Exception:
            self._attempt(lambda: self._raised(request), None)
            raise

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[object]]]
    ) -> ToolMessage | Command[object]:
        """Do as `wrap_tool_call` does, off the event loop."""
        refusal = await to_thread.run_sync(self._refusal, request)
        if refusal is not None:
            return refusal
        try:
            return await handler(request)
        except GraphBubbleUp:  # as above
            raise
        except Exception:
            await to_thread.run_sync(lambda: self._attempt(lambda: self._raised(request), None))
            raise

    def after_agent(self, state: AgentState[ResponseT], runtime: Runtime[ContextT]) -> None:
        """Tell the answer, and end the turn; end the session of a run that belongs to no thread."""
        del runtime
        self._attempt(lambda: self._end(state), None)

    async def aafter_agent(self, state: AgentState[ResponseT], runtime: Runtime[ContextT]) -> None:
        """Do as `after_agent` does, off the event loop."""
        await to_thread.run_sync(self.after_agent, state, runtime)

    def _begin(self, state: object) -> None:
        place = self._place(state)
        with place.conversation.lock:
            place.conversation.begin()

    def _before_model(self, request: ModelRequest[ContextT]) -> None:
        place = self._place(request.state)
        with self._holding(place) as conversation:
            self._tell(place, lambda: conversation.asks(request))
            self._catch_up(place, request.state)
            self._tell(place, conversation.end_turn)
            conversation.go_on()

    def _end(self, state: object) -> None:
        place = self._place(state)
        with self._holding(place) as conversation:
            self._catch_up(place, state)
            self._tell(place, conversation.end_turn)
            if not place.lasting:
                self._tell(place, lambda: [SessionEnded(channel=Channel.CONTROL, source=Source.SYSTEM)])
        if not (place.lasting or place.session.waiting):
            place.session.close()

    def _raised(self, request: ToolCallRequest) -> None:
        place = self._place(request.state)
        with self._holding(place) as conversation:
            self._tell(place, lambda: [conversation.failed(proposed(request.tool_call))])

    def _refusal(self, request: ToolCallRequest) -> ToolMessage | None:
        """Return the host's answer to a call that may not run. Raises CallBlocked instead, if it was told to."""
        unjudged = Decision(session="", seq=-1, about=-1, allowed=not self._monitor.fleet.policy.fail_closed)
        decision = self._attempt(lambda: self._judged(request), unjudged)
        try:
            self.enforce(decision)
        except CallBlocked:
            if self._raises:
                raise
            call = request.tool_call
            text = f"This tool call was refused by policy and did not run ({self._why(decision)})."
            return ToolMessage(content=text, tool_call_id=call["id"] or "", name=call["name"], status="error")
        return None

    def _judged(self, request: ToolCallRequest) -> Decision:
        place = self._place(request.state)
        with self._holding(place) as conversation:
            self._catch_up(place, request.state)
            decision = self._noting(place, lambda: self._decision(place, proposed(request.tool_call)))
            decision = decision or Decision(session=place.session.id, seq=-1, about=-1)
            if not (conversation.lost and self._monitor.fleet.policy.fail_closed):
                return decision
            detail = "part of this thread could not be told"
            lost = Signal(said=Failure(detector=_NAME, version=_VERSION, cause=Cause.ERROR, detail=detail))
            refused = replace(decision, allowed=False, signals=(*decision.signals, lost))
            conversation.found.append(refused)
            return refused

    @contextmanager
    def _holding(self, place: _Place) -> Generator[Conversation, None, None]:
        """Hold a conversation; when it is let go, tell of what was found. So may who hears use the agent himself."""
        with place.conversation.lock:
            yield place.conversation
            found, place.conversation.found = place.conversation.found, []
        for decision in found:
            self._announce(place.session, decision)

    def _announce(self, session: Session, decision: Decision) -> None:
        """Let the host hear of a decision: a fault of who hears may neither break the agent nor let a call through."""
        why = ""
        if self._hears is not None:
            fault = attempted(partial(self._tell_host, self._hears, decision), _NAME, _VERSION)
            if not isinstance(fault, Failure):
                return
            # What it raised may hold what it saw, or its own keys: the log is told no more than the store is.
            why = session.quoted(fault.detail)
            session.note(replace(fault, detail=f"on_decision: {fault.detail}"))
        fault = attempted(partial(logged, decision, why), _NAME, _VERSION)
        if isinstance(fault, Failure):
            session.note(replace(fault, detail=f"the log: {fault.detail}"))

    @staticmethod
    def _tell_host(hears: Callable[[Decision], object], decision: Decision) -> None:
        left = undone(hears(decision))
        if left:
            raise TypeError(f"it {left}: nobody heard of the finding")

    def _why(self, decision: Decision) -> str:
        """Return the codes that refuse, or else those that failed, or else what stands in the way."""
        refusing = [signal.code for signal in decision.signals if self._monitor.fleet.policy.refuses(signal)]
        failed = [signal.code for signal in decision.signals if isinstance(signal.said, Failure)]
        return ", ".join(dict.fromkeys(refusing or failed)) or ("not judged" if decision.seq < 0 else decision.action)

    def _decision(self, place: _Place, call: ToolCallProposed) -> Decision:
        """Return what was decided about a call, or is now where none was told that is the same in all."""
        return place.conversation.decided(call) or self._observe(place, call)

    def _catch_up(self, place: _Place, state: object) -> None:
        """Tell each message of the thread that was not told; one that cannot be told is noted, and not tried again."""
        for key, message in place.conversation.fresh(messages_in(state)):
            self._tell(place, partial(place.conversation.tell, message))
            place.conversation.told(key)

    def _tell(self, place: _Place, events: Callable[[], Iterable[AnyHostEvent]]) -> None:
        """Observe the events that something makes."""

        def tell() -> None:
            for event in events():
                self._observe(place, event)

        self._noting(place, tell)

    def _observe(self, place: _Place, event: AnyHostEvent) -> Decision:
        decision = place.session.observe(event)
        place.conversation.decide(event, decision)
        if loud(decision, self._monitor.fleet.policy):
            place.conversation.found.append(decision)
        return decision

    def _noting(self, place: _Place, act: Callable[[], _T]) -> _T | None:
        """Do something; turn what is raised into a Failure that the session tells, since it may not break the agent."""
        done = attempted(act, _NAME, _VERSION)
        if not isinstance(done, Failure):
            return done
        place.conversation.lost = True
        place.session.note(done)
        return None

    def _attempt(self, act: Callable[[], _T], otherwise: _T) -> _T:
        """Do something of which nothing may break the agent; warn where no session could be told that it failed."""
        done = attempted(partial(_or_our_word, act), _NAME, _VERSION)
        if not isinstance(done, Failure | _Ours):
            return done
        why = done.why if isinstance(done, _Ours) else self._quoted(done.detail)
        warnings.warn(f"theodolite could not look at an agent: {why!a}", RuntimeWarning, stacklevel=3)
        return otherwise

    def _quoted(self, text: str) -> str:
        """Return what others raised as it may be shown where there is no session."""
        return Scrubber(self._monitor.fleet.redactor, (), ()).quote(text)

    def _place(self, state: object) -> _Place:
        """Return the session that this run belongs to, opened where need be, and what was told to it."""
        name, lasting, wrote = whereabouts(state)
        session = self._monitor.session(name, agent=self._agent)
        with self._lock:
            conversation = self._conversations.get(session)
            if conversation is None:
                conversation = self._conversations[session] = Conversation(wrote)
        return _Place(session, conversation, lasting)
