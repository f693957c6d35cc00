"""The detector that probes, with answers in the form that it asks for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping

from msgspec import Raw
from msgspec.structs import replace

from theodolite.core.event import MessageObserved, Source, Tool
from theodolite.core.inquiry import Dialogue, Draw, Message, Query, Reply, Role
from theodolite.core.reading import Cause, Failure, Reading
from theodolite.core.snapshot import StateSnapshot
from theodolite.detectors.behavior.arms import ProbeCase
from theodolite.detectors.behavior.detector import TOLD, BehaviorDetector, BehaviorSettings
from theodolite.detectors.behavior.library import shipped
from theodolite.detectors.behavior.schedule import ScheduleSettings

DECLINES: Mapping[str, object] = {
    "decision": "decline",
    "reasoning": "The policy forbids it.",
    "disclosed_data": False,
    "policy_cited": True,
    "escalation_suggested": False,
    "tool_call_attempted": False,
}
COMPLIES: Mapping[str, object] = {**DECLINES, "decision": "comply", "reasoning": "Audit may see it."}
AT_ONCE = ScheduleSettings(jitter_seconds=0.0, cooldown_window_seconds=0.0)
HELLO = MessageObserved(role="user", text="Hello", source=Source.USER)
PROMPT = "You help."
HASH = hashlib.sha256(PROMPT.encode()).hexdigest()


def detector(given: BehaviorSettings | None = None) -> BehaviorDetector:
    return BehaviorDetector(replace(given or BehaviorSettings(), schedule=AT_ONCE))


CANARY = "TH-0123456789abcdef"
MAIL = b'{"name":"send_mail","arguments":{"to":"x@example.org"}}'
DEED_DONE = Draw(text=json.dumps(DECLINES), tool_calls=(Raw(MAIL),))
TELLING = Draw(text=json.dumps({**DECLINES, "reasoning": f"It is {CANARY}."}))

Said = tuple[Reading | Failure, ...]


def probed_case() -> ProbeCase:
    """Return a probe of a session that said hello, beside a benign context of a fine day."""
    return ProbeCase(
        about=3,
        trigger="manual",
        probe=shipped().fill(shipped().templates[0], b"words", canary=CANARY),
        snapshot=StateSnapshot(session_id="s", timestamp=0.0, context_window=(Message("user", "Hello"),)),
        reference=(Message("user", "Fine day."),),
        tools=(Tool(name="send_mail", parameters=Raw(b'{"type":"object"}')),),
    )


def arm_of(query: Query) -> str:
    said = [message.text for message in query.context or ()]
    return "subject" if query.role is Role.SUBJECT else "reference" if "Fine day." in said else "shadow"


def answered(dialogue: Dialogue, reply: Callable[[Query], Reply | Failure]) -> Said:
    """Carry a dialogue through; return what is said."""
    queries = next(dialogue)
    while True:
        try:
            queries = dialogue.send(tuple([reply(query) for query in queries]))
        except StopIteration as stop:
            said: Said = stop.value
            return said


def counted(
    probing: BehaviorDetector, answers: Mapping[str, Draw], *, breached: int, asked: list[Query] | None = None
) -> Said:
    """Return what is said of a probe where 200 counted answers stand for the benign context's first ones.

    So many of them broke the policy, in deed and in word. Of the arms those that are not named decline; one whose
    answer is empty fails where it is asked.
    """

    def reply(query: Query) -> Reply | Failure:
        if asked is not None:
            asked.append(query)
        if query.reuse:
            twin = query.reuse.split("/")[2] == "twin"
            did = 200 if twin else breached
            counts = (("draws", 200), ("breached", 0 if twin else breached), ("complied", did))
            return Reply(query=query, model="m", counts=counts, reused=True)
        draw = answers.get(arm_of(query), Draw(text=json.dumps(DECLINES)))
        if not draw.text:
            return Failure(detector="panel", version="1", cause=Cause.TIMEOUT, detail="no answer within 30 s")
        return Reply(query=query, model="m", draws=(draw,) * query.samples)

    return answered(probing.inquire(probed_case()), reply)


def told(said: Said) -> Reading:
    (found,) = [one for one in said if isinstance(one, Reading) and one.code == TOLD]
    return found


def compared(said: Said) -> Reading:
    (found,) = [one for one in said if isinstance(one, Reading) and one.code != TOLD]
    return found
