"""`[models]` and `[panel]`: who plays which role, and what cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from theodolite.config.models import KINDS, ModelSettings, PanelSettings, chosen, open_model, players
from theodolite.config.settings import read_settings
from theodolite.core.errors import ConfigError
from theodolite.core.inquiry import Role
from theodolite.core.model import Price
from theodolite.models.anthropic import AnthropicModel
from theodolite.models.local import LocalModel
from theodolite.models.openai import OpenAIModel
from theodolite.models.pydantic_ai import PydanticAIModel

PRICE = Price(input=1.0, output=2.0)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-none")


def test_nobody_plays_where_no_subject_is_named() -> None:
    assert players(PanelSettings(), {"shop": ModelSettings(kind="openai", model="m-1")}) == {}


def test_a_role_that_names_nobody_is_played_by_the_subject_and_each_model_is_opened_once() -> None:
    models = {"a": ModelSettings(kind="openai", model="m-1"), "b": ModelSettings(kind="anthropic", model="m-2")}
    who = players(PanelSettings(subject="a", judge="b"), models)
    assert set(who) == set(Role)
    assert who[Role.SUBJECT] is who[Role.SHADOW] is who[Role.BASELINE]
    assert (who[Role.SUBJECT].name, who[Role.JUDGE].name) == ("m-1", "m-2")


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        ("local", LocalModel),
        ("openai", OpenAIModel),
        ("openai-responses", OpenAIModel),
        ("anthropic", AnthropicModel),
        ("pydantic-ai", PydanticAIModel),
    ],
)
def test_every_kind_opens_with_what_it_takes(kind: str, made: type) -> None:
    settings = ModelSettings(kind=kind, model="test", max_concurrency=2, temperature=0.5, max_tokens=64)
    model = open_model("shop", settings)
    assert type(model) is made
    assert model.max_concurrency == 2


def test_no_kind_is_forgotten_here() -> None:
    assert set(KINDS) == {"local", "openai", "openai-responses", "anthropic", "pydantic-ai"}


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        (ModelSettings(kind="opnai", model="m"), r"models\.shop\.kind: there is no kind 'opnai'; known: local, openai"),
        (ModelSettings(kind="openai"), r"models\.shop\.model is missing"),
        (
            ModelSettings(kind="openai", model="m", api_key_env="NO_SUCH"),
            r"the environment variable NO_SUCH is not set",
        ),
        (ModelSettings(kind="local", price=PRICE), r"a model of the kind local takes no price"),
        (ModelSettings(kind="anthropic", model="m", top_logprobs=3), r"the kind anthropic takes no top_logprobs"),
        (ModelSettings(kind="pydantic-ai", model="test", base_url="http://x"), r"pydantic-ai takes no base_url"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_key(settings: ModelSettings, fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        open_model("shop", settings)


def test_a_role_for_a_model_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(ConfigError, match=r"panel\.judge: no model is named 'b'; known: a"):
        players(PanelSettings(subject="a", judge="b"), {"a": ModelSettings(kind="openai", model="m")})


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("inf"), float("nan")])
def test_a_timeout_is_a_time(timeout: float) -> None:
    with pytest.raises(ValueError, match="is none: give a number above 0"):
        PanelSettings(timeout=timeout)


@pytest.mark.parametrize(
    ("spec", "kind", "model"),
    [
        ("local", "local", ""),
        ("local:weights/own.gguf", "local", "weights/own.gguf"),
        ("openai:gpt-5.1", "openai", "gpt-5.1"),
        ("openai:ft:gpt:x", "openai", "ft:gpt:x"),
    ],
)
def test_a_word_on_the_command_line_names_a_kind_and_a_model(spec: str, kind: str, model: str) -> None:
    assert chosen(spec, []) == ModelSettings(kind=kind, model=model)


def test_a_name_of_the_settings_goes_before_a_kind() -> None:
    assert chosen("local", ["local"]) is None


@pytest.mark.parametrize("spec", ["", "gpt-5.1", "openai", "openai:", "local:", "nobody:m"])
def test_what_names_no_model_says_what_to_give(spec: str) -> None:
    with pytest.raises(ConfigError, match="KIND:MODEL"):
        chosen(spec, ["shop"])


def test_the_settings_file_is_read_strictly(tmp_path: Path) -> None:
    path = tmp_path / "theodolite.toml"
    shop = '[models.shop]\nkind = "openai"\nmodel = "m-1"\nprice = { input = 1.0, output = 2.0 }\n'
    path.write_text(f"{shop}[budget.day]\ncost = 5.0\n", encoding="utf-8")
    settings = read_settings(path)
    assert settings.models["shop"].price == PRICE
    assert settings.budget.day.cost == 5.0
    for wrong, fault in (
        ('[models.shop]\nkind = "openai"\nmodle = "m"\n', r"models\.shop"),
        ("[budget.dya]\ncost = 5.0\n", r"did you mean 'budget\.day'"),
        ("[budget.day]\ncost = -1.0\n", r"budget\.day"),
        ("[panel]\ntimeout = 0.0\n", "panel"),
    ):
        path.write_text(wrong, encoding="utf-8")
        with pytest.raises(ConfigError, match=fault):
            read_settings(path)
