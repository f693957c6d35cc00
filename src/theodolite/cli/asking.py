"""Settings as the command line changes them: who is asked, how often, and with which system prompt."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from theodolite.config.models import PanelSettings, chosen, lacking
from theodolite.config.probing import check_asking
from theodolite.config.settings import Settings, naming, read_settings
from theodolite.core.arguments import is_mapping
from theodolite.core.errors import ConfigError
from theodolite.reports.probes import DETECTOR

__all__ = ("check_models", "of_recordings", "settings_of", "with_model", "without_models")


def settings_of(config: Path | None, *, model: str | None, system: Path | None) -> Settings:
    """Return the settings of a file, or the defaults, with the model and the system prompt of the command line.

    Raises ConfigError for what is wrong with any of them: also for what the command line would replace.
    """
    settings = read_settings(config)
    with naming(settings):
        check_asking(settings)
    return _with_system(with_model(settings, model), system)


def check_models(settings: Settings) -> None:
    """Raise ConfigError where a model that will be asked is not there, before anything is read."""
    with naming(settings):
        lacks = lacking(settings.panel, settings.models, Path(settings.folder))
        if lacks:
            raise ConfigError(lacks)


def with_model(settings: Settings, spec: str | None) -> Settings:
    """Return the settings with the model of the command line in every role but that of a judge who is asked for.

    Raises ConfigError for what is no model.
    """
    if spec is None:
        return settings
    named = chosen(spec, settings.models)
    models = settings.models if named is None else {**settings.models, spec: named}
    judge = settings.panel.judge if settings.detectors.get(DETECTOR, {}).get("judge") is True else ""
    panel = replace(settings.panel, subject=spec, shadow="", baseline="", judge=judge)
    return replace(settings, models=models, panel=panel)


def without_models(settings: Settings) -> Settings:
    """Return the settings with nobody to ask."""
    return replace(settings, panel=PanelSettings())


def _with_system(settings: Settings, file: Path | None) -> Settings:
    """Return the settings with the system prompt of a file for probes. Raises ConfigError when it cannot be read."""
    if file is None:
        return settings
    try:
        text = file.read_bytes().decode()  # as it stands: a prompt whose line ends were changed has another hash
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the system prompt {file} cannot be read: {error}") from error
    table = {**settings.detectors.get(DETECTOR, {}), "system": text}
    return replace(settings, detectors={**settings.detectors, DETECTOR: table})


def of_recordings(settings: Settings, *, probes: int | None = None, before: int = 0) -> Settings:
    """Return the settings as recordings are probed: only when it is asked for, and then at once.

    What is recorded is over: its length brings no probes, and nobody waits for the cooldown of a session of last week.
    With `probes` each session may have so many and no more, so that their types are spread over all of them; those that
    it was put while it was recorded, `before` at most, use none of them up.
    """
    if not settings.panel.subject:
        return settings
    table = settings.detectors.get(DETECTOR, {})
    schedule = table.get("schedule", {})
    if not is_mapping(schedule):  # whoever reads the table says what is wrong with it
        return settings
    cap: dict[object, object] = {} if probes is None else {"max_probes_per_session": probes + before}
    at_once: dict[object, object] = {**schedule, "jitter_seconds": 0.0, "cooldown_window_seconds": 0.0, **cap}
    table = {**table, "scheduled": False, "schedule": at_once}
    return replace(settings, detectors={**settings.detectors, DETECTOR: table})
