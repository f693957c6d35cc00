"""Which models answer inquiries: named in the settings, or on the command line."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct

from theodolite.core.errors import ConfigError
from theodolite.core.inquiry import Role
from theodolite.core.model import Model, Price
from theodolite.core.text import brief
from theodolite.models.hosted.defaults import MAX_CONCURRENCY, MAX_TOKENS, TIMEOUT, TOP_LOGPROBS

__all__ = (
    "KINDS",
    "AnthropicSettings",
    "LocalSettings",
    "ModelSettings",
    "OpenAISettings",
    "PanelSettings",
    "PydanticAISettings",
    "ResponsesSettings",
    "chosen",
    "lacking",
    "open_model",
    "played",
    "players",
)

# Each adapter loads an SDK of its own: only the one that is named is imported, by `open`.


class LocalSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="local"):
    """`[models.NAME]` with `kind = "local"`: the embedded model, or the GGUF file `model`, relative to the settings.

    `context` is in tokens, for a question and its answer. What is left out is as `LocalModel` has it.
    """

    model: str = ""
    max_concurrency: int = 1
    threads: int = 1
    context: int = 8192
    temperature: float = 0.7
    max_tokens: int = 192
    seed: int = 0

    def open(self, folder: Path) -> Model:
        """Return the model. Raises ConfigError, MissingExtraError."""
        from theodolite.models.local import LocalModel  # noqa: PLC0415 - as said

        return LocalModel(
            folder / self.model if self.model else None,
            max_concurrency=self.max_concurrency,
            threads=self.threads,
            context=self.context,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            seed=self.seed,
        )

    def lacking(self, folder: Path) -> str:
        """Return what its weights lack to be asked, and what to do; nothing where they are there."""
        if self.model:
            path = folder / self.model
            return "" if path.is_file() else f"there is no file {path}: name a GGUF file"
        from theodolite.models.local.weights import SMOLLM2  # noqa: PLC0415 - as said

        if SMOLLM2.path().is_file():
            return ""
        return (
            f"the weights of the embedded model are not on this machine (looked for {SMOLLM2.path()}): run "
            "`theodolite models pull`"
        )


class _Hosted(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """What all models of providers have.

    `model` is the provider's name for it, `price` what a million tokens cost, as input and output. `timeout` is in
    seconds, for one request with all its attempts; what a panel waits is shorter. Raises ValueError without a name.
    """

    model: str
    price: Price | None = None
    max_concurrency: int = MAX_CONCURRENCY
    temperature: float | None = None
    max_tokens: int = MAX_TOKENS
    timeout: float = TIMEOUT

    def __post_init__(self) -> None:
        if not self.model:
            raise ValueError("a model without a name: give the one that the provider knows it by")


class _Addressed(_Hosted, frozen=True, kw_only=True):
    """What models of servers have whose address and key can be given.

    `base_url` is that of a compatible server, `api_key_env` the environment variable that holds the key: keys do not
    belong in files under version control. What is left out is where the provider's SDK looks.
    """

    base_url: str = ""
    api_key_env: str = ""

    @property
    def key(self) -> str | None:
        """The key, if a variable is named for it. Raises ConfigError when that is not set."""
        if not self.api_key_env:
            return None
        key = os.environ.get(self.api_key_env)
        if not key:
            raise ConfigError(  # without its name, which may be the key
                "the environment variable that api_key_env names is not set: set it to the key, or name another; it is "
                "the name of a variable, and not the key itself"
            )
        return key


class OpenAISettings(_Addressed, frozen=True, kw_only=True, tag="openai"):
    """`[models.NAME]` with `kind = "openai"`: Chat Completions of OpenAI, or of a server that speaks them.

    `top_logprobs` is how many alternatives a choice is read from, 0 for models that show none.
    """

    api: ClassVar[Literal["chat", "responses"]] = "chat"

    top_logprobs: int = TOP_LOGPROBS

    def open(self, folder: Path) -> Model:
        """Return the model. Raises ConfigError, MissingExtraError."""
        from theodolite.models.openai import OpenAIModel  # noqa: PLC0415 - as said

        del folder
        return OpenAIModel(
            self.model,
            api=self.api,
            base_url=self.base_url or None,
            api_key=self.key,
            price=self.price,
            max_concurrency=self.max_concurrency,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            top_logprobs=self.top_logprobs,
            timeout=self.timeout,
        )


class ResponsesSettings(OpenAISettings, frozen=True, kw_only=True, tag="openai-responses"):
    """`[models.NAME]` with `kind = "openai-responses"`: Responses of OpenAI. The keys are those of `openai`."""

    api: ClassVar[Literal["chat", "responses"]] = "responses"


class AnthropicSettings(_Addressed, frozen=True, kw_only=True, tag="anthropic"):
    """`[models.NAME]` with `kind = "anthropic"`: Messages of Anthropic, or of a server that speaks them."""

    def open(self, folder: Path) -> Model:
        """Return the model. Raises ConfigError, MissingExtraError."""
        from theodolite.models.anthropic import AnthropicModel  # noqa: PLC0415 - as said

        del folder
        return AnthropicModel(
            self.model,
            base_url=self.base_url or None,
            api_key=self.key,
            price=self.price,
            max_concurrency=self.max_concurrency,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            timeout=self.timeout,
        )


class PydanticAISettings(_Hosted, frozen=True, kw_only=True, tag="pydantic-ai"):
    """`[models.NAME]` with `kind = "pydantic-ai"`: whatever Pydantic AI can ask, by its name there."""

    def open(self, folder: Path) -> Model:
        """Return the model. Raises ConfigError, MissingExtraError."""
        from theodolite.models.pydantic_ai import PydanticAIModel  # noqa: PLC0415 - as said

        del folder
        return PydanticAIModel(
            self.model,
            price=self.price,
            max_concurrency=self.max_concurrency,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            timeout=self.timeout,
        )


ModelSettings: TypeAlias = LocalSettings | OpenAISettings | ResponsesSettings | AnthropicSettings | PydanticAISettings
"""`[models.NAME]`: a model, and how it is reached. `kind` says which of these it is."""

KINDS: Mapping[str, type[ModelSettings]] = {
    "local": LocalSettings,
    "openai": OpenAISettings,
    "openai-responses": ResponsesSettings,
    "anthropic": AnthropicSettings,
    "pydantic-ai": PydanticAISettings,
}


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
        return KINDS[kind](model=model)
    listed = f"a name of [models] ({', '.join(known)}), " if known else ""
    raise ConfigError(
        f"no model is called {brief(spec)}: give {listed}'local', 'local:FILE.gguf', or KIND:MODEL with one of the "
        f"kinds {', '.join(KINDS)}, as openai:gpt-5.1"
    )


def open_model(name: str, settings: ModelSettings, folder: Path = Path()) -> Model:
    """Return the model of some settings, relative to a folder. Nothing is loaded or asked yet.

    Raises ConfigError for settings that do not fit, MissingExtraError where the adapter's package is not installed.
    """
    try:
        return settings.open(folder)
    except ConfigError as error:
        raise ConfigError(f"models.{name}: {error}") from error


def played(panel: PanelSettings, models: Mapping[str, ModelSettings]) -> dict[Role, str]:
    """Return the name of who plays each role. Raises ConfigError for a name that is none of the models'."""
    names: dict[Role, str] = {role: name for role in Role if (name := getattr(panel, role.value) or panel.subject)}
    for role, name in names.items():
        if name not in models:
            raise ConfigError(
                f"panel.{role.value}: no model is named {brief(name)}; known: {', '.join(models) or 'none'}"
            )
    return names


def lacking(panel: PanelSettings, models: Mapping[str, ModelSettings], folder: Path = Path()) -> str:
    """Return what a model lacks that plays a role, and what to do; nothing where all can be asked.

    Raises ConfigError for a name that is none of the models'.
    """
    for name in dict.fromkeys(played(panel, models).values()):
        model = models[name]
        lacks = model.lacking(folder) if isinstance(model, LocalSettings) else ""
        if lacks:
            return f"models.{name}: {lacks}"
    return ""


def players(
    panel: PanelSettings,
    models: Mapping[str, ModelSettings],
    folder: Path = Path(),
    *,
    heard: Callable[[Model], Model] | None = None,
) -> dict[Role, Model]:
    """Return who plays which role; nobody one that no name is given for. Each model is opened once.

    `heard` makes of each the one that is asked. Raises ConfigError for a name that is none of the models', and what
    `open_model` raises.
    """
    names = played(panel, models)
    opened = {name: open_model(name, models[name], folder) for name in dict.fromkeys(names.values())}
    if heard is not None:
        opened = {name: heard(model) for name, model in opened.items()}
    return {role: opened[name] for role, name in names.items()}
