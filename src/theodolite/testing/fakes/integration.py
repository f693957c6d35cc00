"""An agent framework in memory, and the integration that watches it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypedDict

from theodolite.core.errors import CallBlocked, HarnessError
from theodolite.core.event import (
    AnyHostEvent,
    Channel,
    GoalStated,
    MessageObserved,
    SessionEnded,
    Source,
    SystemPromptSet,
    Tool,
    ToolCallProposed,
    ToolResultObserved,
    ToolsDeclared,
    TurnEnded,
)
from theodolite.core.integration import Claims
from theodolite.core.policy import Decision

__all__ = ("FakeHost", "FakeIntegration", "HostMessage")


class HostMessage(TypedDict):
    """What the host calls a message: `kind` is system, user, assistant, tools, call, result or end."""

    kind: str
    name: str
    text: str
    arguments: dict[str, object]


class FakeHost:
    """A framework whose model follows a plan: what the user asks, which tools it calls, what they return.

    Its objects are mutable, as those of real frameworks are. A hook is shown each message as it passes; one that raises
    CallBlocked for a call keeps it from running. `ran` lists the tools that did run, `refused` those that did not.
    """

    def __init__(self) -> None:
        self.messages = [
            _message("system", text="You pay bills."),
            _message("tools", name="send_money", text="Transfer an amount to an account."),
            _message("user", text="Please pay the water bill."),
            _message("call", name="send_money", arguments={"to": "ES-77", "amount": 30.2}),
            _message("result", name="send_money", text="transferred"),
            _message("assistant", text="The water bill is paid."),
            _message("end"),
        ]
        self.ran: list[str] = []
        self.refused: list[str] = []

    def run(self, hook: Callable[[HostMessage], None]) -> None:
        """Go through the plan once."""
        refused = False
        for message in self.messages:
            if message["kind"] == "result" and refused:
                message = _message("result", name=message["name"], text="refused")  # noqa: PLW2901 - the host's answer
            try:
                hook(message)
            except CallBlocked:
                if message["kind"] != "call":
                    raise
                refused = True
                self.refused.append(message["name"])
            else:
                if message["kind"] == "call":
                    refused = False
                    self.ran.append(message["name"])

    def scribble(self) -> None:
        """Overwrite every object that a hook was shown."""
        for message in self.messages:
            message["name"] = message["text"] = "overwritten"
            message["arguments"].clear()


class FakeIntegration:
    """Watches a FakeHost: what passes there becomes an event for `observe`, and its decision is carried out.

    >>> from theodolite.runtime.monitor import Monitor
    >>> host = FakeHost()
    >>> with Monitor().session("s-1") as session:
    ...     FakeIntegration(host, session.observe).run()
    >>> host.ran
    ['send_money']
    """

    def __init__(self, host: FakeHost, observe: Callable[[AnyHostEvent], Decision]) -> None:
        self._host = host
        self._observe = observe

    def run(self) -> None:
        """Let the host run, watched."""
        self._host.run(self._hook)

    def coverage(self) -> Claims:
        """Return the channels of the host, and that calls can be stopped."""
        return Claims(sees=frozenset(_CARRIERS), stops_calls=True, fails_open=False)

    def enforce(self, decision: Decision) -> None:
        """Raise CallBlocked for a decision that refuses."""
        if not decision.allowed:
            raise CallBlocked(decision)

    def plant(self, channel: Channel, token: str) -> None:
        """Put a token into the message that the channel carries."""
        kind = _CARRIERS.get(channel)
        if kind is None:
            raise HarnessError(f"the fake host has no channel {channel.value}: plant on one of {sorted(_CARRIERS)}")
        for message in self._host.messages:
            if message["kind"] == kind:
                if kind == "call":
                    message["arguments"]["note"] = token
                else:
                    message["text"] += f" {token}"

    def _hook(self, message: HostMessage) -> None:
        for event in _events(message):
            decision = self._observe(event)
            if isinstance(event, ToolCallProposed):
                self.enforce(decision)


_CARRIERS = {
    Channel.TOOL_DEFINITION: "tools",
    Channel.USER_TEXT: "user",
    Channel.TOOL_CALL_OBJECT: "call",
    Channel.TOOL_RESULT_TEXT: "result",
    Channel.ASSISTANT_TEXT: "assistant",
}


def _message(kind: str, name: str = "", text: str = "", arguments: dict[str, object] | None = None) -> HostMessage:
    return HostMessage(kind=kind, name=name, text=text, arguments=arguments or {})


def _events(message: HostMessage) -> tuple[AnyHostEvent, ...]:
    name, text = message["name"], message["text"]
    seen: list[AnyHostEvent] = []
    match message["kind"]:
        case "system":
            digest = hashlib.sha256(text.encode()).hexdigest()
            seen += [SystemPromptSet(prompt_hash=digest, channel=Channel.SYSTEM_TEXT, source=Source.SYSTEM)]
        case "tools":
            tools = (Tool(name=name, description=text),)
            seen += [ToolsDeclared(tools=tools, channel=Channel.TOOL_DEFINITION, source=Source.SYSTEM)]
        case "user":
            seen += [GoalStated(text=text, channel=Channel.USER_TEXT, source=Source.USER)]
            seen += [MessageObserved(role="user", text=text, channel=Channel.USER_TEXT, source=Source.USER)]
        case "call":
            said = message["arguments"]
            seen += [ToolCallProposed(tool=name, arguments=said, channel=Channel.TOOL_CALL_OBJECT, source=Source.MODEL)]
        case "result":
            seen += [ToolResultObserved(tool=name, text=text, channel=Channel.TOOL_RESULT_TEXT, source=Source.TOOL)]
        case "assistant":
            seen += [MessageObserved(role="assistant", text=text, channel=Channel.ASSISTANT_TEXT, source=Source.MODEL)]
            seen += [TurnEnded(channel=Channel.CONTROL, source=Source.SYSTEM)]
        case _:
            seen += [SessionEnded(channel=Channel.CONTROL, source=Source.SYSTEM)]
    return tuple(seen)
