"""The reader of labelled sessions: the form in which public benchmark runs are kept to fit and test on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Literal, TypedDict

from msgspec import UNSET, Struct, UnsetType
from msgspec.json import Decoder

from theodolite.core.errors import EventError
from theodolite.core.event import (
    Channel,
    GoalStated,
    MessageObserved,
    ModelCalled,
    SessionEnded,
    Source,
    ToolCallProposed,
    ToolResultObserved,
    TurnEnded,
)
from theodolite.core.labels import Label as SessionLabel
from theodolite.core.labels import attacked
from theodolite.core.lines import content, decode, first_keys, lines, session_name
from theodolite.core.reader import Recorded, Unreadable

__all__ = ("Label", "LabelledSessions", "label")


class Label(Struct, frozen=True, kw_only=True, gc=False):
    """What is known of a session and no detector may see. `onset_turn` is the first turn of a hijacked agent's act.

    `kind` is one of clean, clean_direct, attacked_unseen, attacked_resisted, attacked_succeeded.
    """

    session_id: str
    kind: str
    onset_turn: int | None = None
    suite: str = ""
    model: str = ""


class _Step(Struct, frozen=True):
    role: Literal["assistant", "tool", "user"]
    turn: int
    tool: str | None = None
    args: dict[str, object] | UnsetType = UNSET
    text: str | UnsetType = UNSET
    error: str | bool | None = None


class _Session(Struct, frozen=True):
    session_id: str
    goal: str
    events: list[_Step]
    model: str = ""
    suite: str = ""
    source: str = ""


class _Labeled(_Session, frozen=True):
    # Of any type: what is wrong with a label makes no session unreadable.
    kind: object = None
    onset_turn: object = None
    user_task: object = None

    def label(self, session: str) -> SessionLabel:
        """Return what is known of the session of that name."""
        kind = self.kind if isinstance(self.kind, str) else ""
        told = {"suite": self.suite, "model": self.model, "kind": kind}
        return SessionLabel(
            session=session,
            known=attacked(kind, began=self.onset_turn is not None),
            task=f"{self.suite}/{self.user_task}" if self.suite and isinstance(self.user_task, str) else "",
            slices={name: value for name, value in told.items() if value},
        )


_LABEL = Decoder(Label)
_LABELED = Decoder(_Labeled)
_SESSION = Decoder(_Session)


def label(line: bytes) -> Label:
    """Return the label of one line. Raises EventError with the place of the fault."""
    return decode(_LABEL, line)


class LabelledSessions:
    """Reads one session a line: its goal, what the agent did, and what the tools returned.

    The suite is the agent, since its tools and its prompt are what makes one; the model stands in ModelCalled. Nothing
    of the label reaches an event, except where the session's name says it: no detector reads names.
    """

    name = "labelled-sessions"

    def detects(self, head: bytes) -> bool:
        """Whether an object with session_id, goal and events begins here."""
        return content(head).startswith(b"{") and first_keys(head) >= {"session_id", "goal", "events"}

    def read(self, stream: BinaryIO, file: str) -> Iterator[Recorded]:
        """Yield the events of each line. Holds one line."""
        for line in lines(stream, file):
            if isinstance(line, Unreadable):
                yield line
                continue
            try:
                session = decode(_SESSION, line.data)
            except EventError as error:
                yield Unreadable(file=file, line=line.number, reason=str(error))
            else:
                yield from _Telling(session, file).events()

    def labels(self, stream: BinaryIO, file: str) -> Iterator[tuple[str, SessionLabel]]:
        """Yield the sessions of a file, each with what became of it. Holds one line.

        A session whose `kind` is not told, or is none of ours, has nothing known of it; so has one that was attacked,
        began what was asked of it (`onset_turn`) and missed it.
        """
        for line in lines(stream, file):
            if isinstance(line, Unreadable):
                continue
            try:
                told = decode(_LABELED, line.data)
            except EventError:
                continue
            session = told.session_id or session_name(file)
            yield session, told.label(session)


class _Place(TypedDict):
    session: str
    agent: str
    turn: int
    channel: Channel
    source: Source


class _Telling:
    """One session being told, event by event."""

    def __init__(self, told: _Session, file: str) -> None:
        self.told = told
        self.session = told.session_id or session_name(file)
        self.agent = told.suite or told.source
        self.turn = told.events[0].turn if told.events else 0
        self.said = ""

    def events(self) -> Iterator[Recorded]:
        told = self.told
        if told.model:
            yield ModelCalled(model=told.model, **self.at(Channel.CONTROL, Source.SYSTEM))
        asked = self.at(Channel.USER_TEXT, Source.USER)
        yield GoalStated(text=told.goal, **asked)
        yield MessageObserved(role="user", text=told.goal, **asked)
        for step in told.events:
            if step.turn != self.turn:
                yield TurnEnded(**self.at(Channel.CONTROL, Source.SYSTEM))
                self.turn, self.said = step.turn, ""
            yield from self.step(step)
        if told.events:
            yield TurnEnded(**self.at(Channel.CONTROL, Source.SYSTEM))
        yield SessionEnded(**self.at(Channel.CONTROL, Source.SYSTEM))

    def step(self, step: _Step) -> Iterator[Recorded]:
        if step.role == "tool":
            # Where a tool failed, what the agent was shown is the error.
            text = step.error if isinstance(step.error, str) and not step.text else step.text
            place = self.at(Channel.TOOL_RESULT_TEXT, Source.TOOL)
            yield ToolResultObserved(tool=step.tool or "", text=text, error=bool(step.error), **place)
        elif step.role == "user":
            yield MessageObserved(role="user", text=step.text, **self.at(Channel.USER_TEXT, Source.USER))
        else:
            # Each call of one message repeats the message's text.
            if step.text and step.text != self.said:
                self.said = str(step.text)
                place = self.at(Channel.ASSISTANT_TEXT, Source.MODEL)
                yield MessageObserved(role="assistant", text=step.text, **place)
            if step.tool is not None:
                place = self.at(Channel.TOOL_CALL_OBJECT, Source.MODEL)
                yield ToolCallProposed(tool=step.tool, arguments=step.args, **place)

    def at(self, channel: Channel, source: Source) -> _Place:
        session, agent = self.session, self.agent
        return {"session": session, "agent": agent, "turn": self.turn, "channel": channel, "source": source}
