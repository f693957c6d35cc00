"""Plug-ins by entry point: a broken one warns and is left out, and all can be switched off."""

from __future__ import annotations

import os
import warnings
from importlib.metadata import entry_points

__all__ = ("GROUPS", "SWITCH", "PluginWarning", "leave_out", "plugins")

GROUPS = (
    "theodolite.detectors",
    "theodolite.verifiers",
    "theodolite.stores",
    "theodolite.readers",
    "theodolite.redactors",
)
SWITCH = "THEODOLITE_PLUGINS"


class PluginWarning(UserWarning):
    """A plug-in could not be loaded and is left out."""


def plugins(group: str) -> dict[str, type]:
    """Return the classes that installed packages offer under an entry-point group, by name.

    `group` is one of GROUPS. Empty when the environment variable THEODOLITE_PLUGINS is `0`. Imports the plug-ins, so
    that their code runs. One that cannot be imported, or is not a class, gives a PluginWarning.
    """
    if os.environ.get(SWITCH) == "0":
        return {}
    found: dict[str, type] = {}
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        try:
            loaded: object = entry.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a foreign module does on import; it is said
            leave_out(f"{entry.value}: {type(error).__name__}: {error}")
            continue
        if isinstance(loaded, type):
            found[entry.name] = loaded
        else:
            leave_out(f"{entry.value} is not a class")
    return found


def leave_out(what: str) -> None:
    """Warn that a plug-in is left out; `what` says which, and why."""
    warnings.warn(f"plug-in left out: {what}. Set {SWITCH}=0 to load none.", PluginWarning, stacklevel=3)
