"""Which models answer inquiries: named in the settings, or on the command line."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from theodolite.core.errors import ConfigError
from theodolite.core.inquiry import Role
from theodolite.core.model import Model, Price

__all__ = ("KINDS", "ModelSettings", "PanelSettings", "chosen", "open_model", "players")


class ModelSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[models.NAME]`: a model, and how it is reached.

    `kind` is one of KINDS. `model` is the provider's name for it, or for `local` the path of a GGUF file, relative to
    the settings; `local` without one is the embedded model. `base_url` is that of a compatible server, `api_key_env`
    the environment variable that holds the key: keys do not belong in files under version control. `price` is what a
    million tokens cost, as input and output; `top_logprobs` how many alternatives a choice is read from, 0 for models
    that show none. What is left out is the adapter's own default.
    """

    kind: str
    model: str = ""
    base_url: str = ""
    api_key_env: str = ""
    price: Price | None = None
    max_concurrency: int | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    top_logprobs: int | None = None


class PanelSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[panel]`: which model plays which role, by the names of `[models]`.

    `subject` is the agent's own model, or a surrogate for it; each role that names nobody is played by the subject.
    `timeout` is in seconds, for one answer. Raises ValueError when that is no time.
    """

    subject: str = ""
    shadow: str = ""
    baseline: str = ""
    judge: str = ""
    timeout: float = 30.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.timeout) and self.timeout > 0.0):
            raise ValueError(f"a timeout of {self.timeout} s is none: give a number above 0")


def _local(given: Mapping[str, object], model: str) -> Model:
    from theodolite.models.local import LocalModel  # noqa: PLC0415 - each adapter loads an SDK of its own

    return LocalModel(Path(model) if model else None, **given)  # type: ignore[arg-type]


def _openai(given: Mapping[str, object], model: str) -> Model:
    from theodolite.models.openai import OpenAIModel  # noqa: PLC0415 - as above

    return OpenAIModel(model, **given)  # type: ignore[arg-type]


def _responses(given: Mapping[str, object], model: str) -> Model:
    return _openai({**given, "api": "responses"}, model)


def _anthropic(given: Mapping[str, object], model: str) -> Model:
    from theodolite.models.anthropic import AnthropicModel  # noqa: PLC0415 - as above

    return AnthropicModel(model, **given)  # type: ignore[arg-type]


def _pydantic_ai(given: Mapping[str, object], model: str) -> Model:
    from theodolite.models.pydantic_ai import PydanticAIModel  # noqa: PLC0415 - as above

    return PydanticAIModel(model, **given)  # type: ignore[arg-type]


KINDS: Mapping[str, Callable[[Mapping[str, object], str], Model]] = {
    "local": _local,
    "openai": _openai,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "pydantic-ai": _pydantic_ai,
}


# What a kind has no use for: an error, since who sets it expects something of it.
_NOT_FOR: Mapping[str, frozenset[str]] = {
    "local": frozenset({"base_url", "price", "api_key", "top_logprobs"}),
    "anthropic": frozenset({"top_logprobs"}),
    "pydantic-ai": frozenset({"base_url", "api_key", "top_logprobs"}),
}


def chosen(spec: str, named: Iterable[str]) -> ModelSettings | None:
    """Return the model that a word on the command line means: `local`, `KIND:MODEL`, or None for a name of `[models]`.

    Raises ConfigError for what is neither.

    >>> chosen("openai:gpt-5.1", []).model
    'gpt-5.1'
    """
    known = tuple(named)
    if spec in known:
        return None
    kind, colon, model = spec.partition(":")
    if kind in KINDS and (model or (kind == "local" and not colon)):
        return ModelSettings(kind=kind, model=model)
    listed = f"a name of [models] ({', '.join(known)}), " if known else ""
    raise ConfigError(
        f"no model is called {spec!r}: give {listed}'local', 'local:FILE.gguf', or KIND:MODEL with one of the kinds "
        f"{', '.join(KINDS)}, as openai:gpt-5.1"
    )


def open_model(name: str, settings: ModelSettings, folder: Path = Path()) -> Model:
    """Return the model of some settings. Nothing is loaded or asked yet.

    Raises ConfigError for settings that do not fit, MissingExtraError where the adapter's package is not installed.
    """
    if settings.kind not in KINDS:
        raise ConfigError(f"models.{name}.kind: there is no kind {settings.kind!r}; known: {', '.join(KINDS)}")
    local = settings.kind == "local"
    if not (settings.model or local):
        raise ConfigError(f"models.{name}.model is missing: give the provider's name of the model")
    given: dict[str, object] = {
        key: getattr(settings, key)
        for key in ("base_url", "price", "max_concurrency", "temperature", "max_tokens", "top_logprobs")
        if getattr(settings, key) not in {None, ""}
    }
    if settings.api_key_env:
        key = os.environ.get(settings.api_key_env)
        if not key:
            raise ConfigError(f"models.{name}.api_key_env: the environment variable {settings.api_key_env} is not set")
        given["api_key"] = key
    strange = given.keys() & _NOT_FOR.get(settings.kind, frozenset())
    if strange:
        raise ConfigError(f"models.{name}: a model of the kind {settings.kind} takes no {min(strange)}")
    model = str(folder / settings.model) if local and settings.model else settings.model
    return KINDS[settings.kind](given, model)


def players(panel: PanelSettings, models: Mapping[str, ModelSettings], folder: Path = Path()) -> dict[Role, Model]:
    """Return who plays which role; nobody one that no name is given for. Each model is opened once.

    Raises ConfigError for a name that is none of the models', and what `open_model` raises.
    """
    names = {role: name for role in Role if (name := getattr(panel, role.value) or panel.subject)}
    for role, name in names.items():
        if name not in models:
            raise ConfigError(f"panel.{role.value}: no model is named {name!r}; known: {', '.join(models) or 'none'}")
    opened = {name: open_model(name, models[name], folder) for name in dict.fromkeys(names.values())}
    return {role: opened[name] for role, name in names.items()}
