"""Settings as the command line changes them: who is asked, how often, and with which system prompt."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from theodolite.config.models import PanelSettings, chosen
from theodolite.config.settings import Settings
from theodolite.core.arguments import is_mapping
from theodolite.core.errors import ConfigError
from theodolite.reports.probes import DETECTOR

__all__ = ("of_recordings", "with_model", "with_system", "without_models")


def with_model(settings: Settings, spec: str | None) -> Settings:
    """Return the settings with the model of the command line in every role. Raises ConfigError for what is none."""
    if spec is None:
        return settings
    named = chosen(spec, settings.models)
    models = settings.models if named is None else {**settings.models, spec: named}
    panel = replace(settings.panel, subject=spec, shadow="", baseline="", judge="")
    return replace(settings, models=models, panel=panel)


def without_models(settings: Settings) -> Settings:
    """Return the settings with nobody to ask."""
    return replace(settings, panel=PanelSettings())


def with_system(settings: Settings, file: Path | None) -> Settings:
    """Return the settings with the system prompt of a file for probes. Raises ConfigError when it cannot be read."""
    if file is None:
        return settings
    try:
        text = file.read_bytes().decode()  # as it stands: a prompt whose line ends were changed has another hash
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the system prompt {file} cannot be read: {error}") from error
    table = {**settings.detectors.get(DETECTOR, {}), "system": text}
    return replace(settings, detectors={**settings.detectors, DETECTOR: table})


def of_recordings(settings: Settings, *, probes: int | None = None) -> Settings:
    """Return the settings as recordings are probed: only when it is asked for, and then at once.

    What is recorded is over: its length brings no probes, and nobody waits for the cooldown of a session of last week.
    With `probes` each session may have so many and no more, so that their types are spread over all of them.
    """
    if not settings.panel.subject:
        return settings
    table = settings.detectors.get(DETECTOR, {})
    schedule = table.get("schedule", {})
    if not is_mapping(schedule):  # whoever reads the table says what is wrong with it
        return settings
    cap: dict[object, object] = {} if probes is None else {"max_probes_per_session": probes}
    at_once: dict[object, object] = {**schedule, "jitter_seconds": 0.0, "cooldown_window_seconds": 0.0, **cap}
    table = {**table, "scheduled": False, "schedule": at_once}
    return replace(settings, detectors={**settings.detectors, DETECTOR: table})
