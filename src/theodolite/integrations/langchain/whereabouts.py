"""Where in LangGraph code runs, and what is in the state there."""

from __future__ import annotations

from langchain_core.messages import BaseMessage
from langgraph.config import get_config

from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.core.event import Source

__all__ = ("RUN", "messages_in", "thread", "whereabouts")

RUN = "theodolite_run"
"""Where in the state the name of a run stands that belongs to no thread."""


def thread() -> object:
    """Return the id of the thread, or None."""
    return get_config().get("configurable", {}).get("thread_id")


def whereabouts(state: object) -> tuple[str, bool, Source]:
    """Return the name of a session, whether it outlasts the run, and who writes what begins a run there.

    LangGraph names where code runs by a path of `node:id` with a bar between; the last one is our own. The node that
    runs tools is called `tools` in every agent.
    """
    path = str(get_config().get("configurable", {}).get("checkpoint_ns") or "").split("|")[:-1]
    thread_id = thread()
    run = state.get(RUN) if is_mapping(state) else None
    name = str((run or "run") if thread_id is None else thread_id)
    if path and path[-1].startswith("tools:"):
        return "/".join([name, *path]), False, Source.MODEL
    # Of a graph around the agent the nodes count and not their ids, which change with each run.
    return "/".join([name, *[node.partition(":")[0] for node in path]]), thread_id is not None, Source.USER


def messages_in(state: object) -> list[BaseMessage]:
    """Return the messages in a state of any of the forms that LangGraph takes."""
    found = state.get("messages") if is_mapping(state) else getattr(state, "messages", state)
    return [item for item in found if isinstance(item, BaseMessage)] if is_sequence(found) else []
