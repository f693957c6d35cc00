"""How fast recorded sessions are read, beside plain json.loads of the same bytes in the same run.

    python benchmarks/readers.py [DATA_DIR]

DATA_DIR holds the labelled sessions (dev.jsonl.gz). The other forms are made from the events of these sessions, so
that each row reads the same calls, results and messages.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from pathlib import Path

from timing import row

from theodolite.core.event import (
    AnyEvent,
    MessageObserved,
    SessionEnded,
    SystemPromptSet,
    ToolCallProposed,
    ToolResultObserved,
)
from theodolite.core.reader import Reader, Unreadable
from theodolite.core.recording import HEADER, encode_line
from theodolite.readers.anthropic_messages import AnthropicMessages
from theodolite.readers.jsonl import EventLines
from theodolite.readers.labelled import LabelledSessions
from theodolite.readers.openai_chat import OpenAIChat
from theodolite.readers.openai_responses import OpenAIResponses

BAR = 50.0  # microseconds an event: 20,000 events a second
RUNS = 5


def best(work: Callable[[], object]) -> float:
    """Return the shortest time of some runs, in seconds: others on the machine only ever add to it."""
    times: list[float] = []
    for _ in range(RUNS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def chats(events: Iterable[AnyEvent]) -> Iterator[list[dict[str, object]]]:
    """Yield the messages of each session, as a Chat Completions host would have kept them."""
    messages: list[dict[str, object]] = []
    for event in events:
        if isinstance(event, MessageObserved):
            messages.append({"role": event.role, "content": event.text})
        elif isinstance(event, ToolCallProposed):
            call = {
                "id": f"c-{len(messages)}",
                "type": "function",
                "function": {"name": event.tool, "arguments": json.dumps(event.values())},
            }
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        elif isinstance(event, ToolResultObserved):
            messages.append({"role": "tool", "tool_call_id": f"c-{len(messages) - 1}", "content": event.text})
        elif isinstance(event, SessionEnded):
            yield messages
            messages = []


def blocks(messages: Iterable[dict[str, object]]) -> Iterator[dict[str, object]]:
    """Yield messages of Chat Completions as an Anthropic host would have kept them."""
    for message in messages:
        if message["role"] == "tool":
            result = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
            yield {"role": "user", "content": [result]}
        elif "tool_calls" in message:
            yield {"role": "assistant", "content": [_tool_use(message)]}
        else:
            yield {"role": message["role"], "content": [{"type": "text", "text": message["content"]}]}


def items(messages: Iterable[dict[str, object]]) -> Iterator[dict[str, object]]:
    """Yield messages of Chat Completions as the items of a Responses host."""
    for message in messages:
        if message["role"] == "tool":
            number = message["tool_call_id"]
            yield {"type": "function_call_output", "call_id": number, "output": message["content"]}
        elif "tool_calls" in message:
            used = _tool_use(message)
            arguments = json.dumps(used["input"])
            yield {"type": "function_call", "call_id": used["id"], "name": used["name"], "arguments": arguments}
        else:
            kind = "output_text" if message["role"] == "assistant" else "input_text"
            part = {"type": kind, "text": message["content"]}
            yield {"type": "message", "role": message["role"], "content": [part]}


def _tool_use(message: dict[str, object]) -> dict[str, object]:
    (call,) = json.loads(json.dumps(message["tool_calls"]))
    function = call["function"]
    arguments = json.loads(function["arguments"])
    return {"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments}


def measure(name: str, reader: Reader, data: bytes) -> bool:
    """Print one row; the reference is json.loads of each of its lines."""

    def read() -> int:
        return sum(not isinstance(item, Unreadable) for item in reader.read(BytesIO(data), "sessions.jsonl"))

    count = read()
    seconds = best(read)
    plain = best(lambda: [json.loads(line) for line in data.splitlines()])
    print(f"{name}: {count} events in {len(data) / 1e6:.1f} MB: {count / seconds:,.0f} events/s")
    return row(f"{name}, an event", 1e6 * seconds / count, "us", budget=BAR, ratio=seconds / plain)


def main() -> int:
    """Print a row for each form; return whether one was too slow."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="?", default=Path("../shared/data/agentdojo"))
    parser.add_argument("--short", action="store_true", help="the same: it takes seconds")
    path = parser.parse_args().data / "dev.jsonl.gz"
    if not path.exists():
        print(f"skipped: no recorded sessions at {path}")
        return 0
    labelled = gzip.decompress(path.read_bytes())
    events = [
        item
        for item in LabelledSessions().read(BytesIO(labelled), path.name)
        if not isinstance(item, Unreadable | SystemPromptSet)
    ]
    sessions = list(chats(events))
    together = [message for messages in sessions for message in messages]
    met = [
        measure("labelled-sessions", LabelledSessions(), labelled),
        measure("theodolite-events", EventLines(), HEADER + b"".join(encode_line(event, None) for event in events)),
        measure("openai-chat, one session a line", OpenAIChat(), "\n".join(map(json.dumps, sessions)).encode()),
        measure("openai-chat, one list", OpenAIChat(), json.dumps(together).encode()),
        *(
            measure(f"{reader.name}, {what}", reader, data)
            for reader, written in (
                (AnthropicMessages(), [list(blocks(messages)) for messages in sessions]),
                (OpenAIResponses(), [list(items(messages)) for messages in sessions]),
            )
            for what, data in (
                ("one session a line", "\n".join(map(json.dumps, written)).encode()),
                ("one list", json.dumps([message for messages in written for message in messages]).encode()),
            )
        ),
    ]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
