"""What the host gives the middleware: checked before an agent runs, and what it calls may leave undone."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from theodolite.core.arguments import is_mapping
from theodolite.core.errors import ConfigError
from theodolite.core.event import Channel
from theodolite.core.text import brief
from theodolite.runtime.monitor import Monitor

__all__ = ("agent_in", "carriers_in", "finishing", "monitor_in", "raises_in", "undone")


def monitor_in(monitor: object) -> Monitor:
    """Return a Monitor. Raises ConfigError for anything else."""
    if isinstance(monitor, Monitor):
        return monitor
    raise ConfigError(f"the middleware takes a Monitor, not {type(monitor).__name__}: theodolite.load() makes one")


def agent_in(agent: object) -> str:
    """Return the id of an agent. Raises ConfigError for what is no text."""
    if isinstance(agent, str):
        return agent
    raise ConfigError(
        f"agent is the id of the agent, as text, not {type(agent).__name__}: pass str(id), or leave it out"
    )


def raises_in(on_refusal: object) -> bool:
    """Whether a refusal leaves the run as an exception. Raises ConfigError for what is neither of the two words."""
    if isinstance(on_refusal, str) and on_refusal in {"message", "raise"}:
        return on_refusal == "raise"
    raise ConfigError(f"on_refusal is 'message' or 'raise', not {brief(on_refusal)}")


def carriers_in(carriers: object) -> dict[Channel, Callable[[str], object]]:
    """Return what puts a token on a channel. Raises ConfigError for other channels, and for what cannot be called."""
    if not is_mapping(carriers):
        raise ConfigError(
            "carriers says by channel how a token is put there, as {Channel.USER_TEXT: say}, not "
            f"{type(carriers).__name__}: pass a mapping, or leave it out"
        )
    known = {_channel(name): carrier for name, carrier in carriers.items()}
    return {
        name: finishing(carrier, f"carriers: what puts a token on {name.value} is a function that takes it")
        for name, carrier in known.items()
    }


def finishing(hears: object, what: str) -> Callable[..., object]:
    """Return a callable that is done when it returns. Raises ConfigError where it can be seen that it would not be."""
    if not callable(hears):
        raise ConfigError(f"{what}, not {brief(hears)}")
    for function in (hears, getattr(hears, "__call__", None)):  # noqa: B004 - of an object, the method that would run
        if inspect.iscoroutinefunction(function):
            raise ConfigError(f"{what}, not a coroutine function: nobody awaits it")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise ConfigError(f"{what}, not a generator function: nobody runs through it")
    return hears


def undone(returned: object) -> str:
    """Return what somebody would have to await or run through, as what a callable returned; empty where it is done."""
    name = type(returned).__name__
    if inspect.iscoroutine(returned) or inspect.isgenerator(returned):
        returned.close()  # or it would warn, whenever it goes, that nobody awaited it
    elif not (inspect.isawaitable(returned) or inspect.isasyncgen(returned)):
        return ""
    return f"returned a {name}, which nobody awaits"


def _channel(name: object) -> Channel:
    if isinstance(name, str) and name in set(Channel):
        return Channel(name)
    raise ConfigError(f"carriers: {brief(name)} is no channel: pass a member of theodolite.Channel")
