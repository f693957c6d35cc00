"""The tables of detectors in the settings, strictly decoded for the detectors that take them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import msgspec
from msgspec import Struct

from theodolite.config.settings import explained, keys_of
from theodolite.core.errors import ConfigError
from theodolite.core.text import brief
from theodolite.detectors.anomaly.detector import AnomalyDetector
from theodolite.detectors.anomaly.tasks import TASK_WORDS

__all__ = ("configured",)

_T = TypeVar("_T")


def configured(name: str, kind: Callable[..., _T], given: dict[str, object]) -> Callable[..., _T]:
    """Return what makes a detector with its settings. Raises ConfigError for settings that it does not take."""
    settings: object = getattr(kind, "settings", None)
    if not (isinstance(settings, type) and issubclass(settings, Struct)):
        if given:
            raise ConfigError(f"detectors.{name} takes no settings but 'enabled', not {brief(min(given))}")
        return kind
    if "enabled" in settings.__struct_fields__:
        given["enabled"] = True
    table = f"detectors.{name}."
    if kind is AnomalyDetector:
        _check_task(given.get("task"))
    try:
        return partial(kind, msgspec.convert(given, settings))
    except msgspec.ValidationError as error:
        keys = list(dict.fromkeys([f"{table}enabled", *keys_of(settings, table)]))
        raise ConfigError(explained(str(error), keys, table)) from error


def _check_task(task: object) -> None:
    """Raise ConfigError for a task of which no word is understood: it would say nothing, and nobody would know."""
    if isinstance(task, str) and task.strip() and not TASK_WORDS.intersection(re.findall("[a-z]+", task.lower())):
        known = ", ".join(sorted(TASK_WORDS))
        raise ConfigError(f"detectors.anomaly.task: no word of {brief(task)} is understood; known: {known}")
