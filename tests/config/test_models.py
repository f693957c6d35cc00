"""`[models]` and `[panel]`: who plays which role, and what cannot be."""

from __future__ import annotations

import inspect
from pathlib import Path

import anyio
import pytest

from theodolite.config.models import (
    KINDS,
    AnthropicSettings,
    LocalSettings,
    ModelSettings,
    OpenAISettings,
    PanelSettings,
    PydanticAISettings,
    ResponsesSettings,
    chosen,
    open_model,
    players,
)
from theodolite.config.settings import read_settings
from theodolite.core.errors import ConfigError, ModelError
from theodolite.core.inquiry import Query, Role
from theodolite.core.model import Price
from theodolite.models.anthropic import AnthropicModel
from theodolite.models.local import LocalModel
from theodolite.models.openai import OpenAIModel
from theodolite.models.pydantic_ai import PydanticAIModel
from theodolite.testing.provider import Breaks, FakeProvider, Phase

PRICE = Price(input=1.0, output=2.0)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-none")


def test_nobody_plays_where_no_subject_is_named() -> None:
    assert players(PanelSettings(), {"shop": OpenAISettings(model="m-1")}) == {}


def test_a_role_that_names_nobody_is_played_by_the_subject_and_each_model_is_opened_once() -> None:
    models: dict[str, ModelSettings] = {"a": OpenAISettings(model="m-1"), "b": AnthropicSettings(model="m-2")}
    who = players(PanelSettings(subject="a", judge="b"), models)
    assert set(who) == set(Role)
    assert who[Role.SUBJECT] is who[Role.SHADOW] is who[Role.BASELINE]
    assert (who[Role.SUBJECT].name, who[Role.JUDGE].name) == ("m-1", "m-2")


MADE: dict[str, type] = {
    "local": LocalModel,
    "openai": OpenAIModel,
    "openai-responses": OpenAIModel,
    "anthropic": AnthropicModel,
    "pydantic-ai": PydanticAIModel,
}
# A name that each kind takes.
NAMES = {"local": "own.gguf", "pydantic-ai": "test"}


def written(folder: Path, kind: str, more: str = "") -> Path:
    path = folder / "theodolite.toml"
    model = NAMES.get(kind, "m-1")
    path.write_text(f'[models.shop]\nkind = "{kind}"\nmodel = "{model}"\n{more}', encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_read_and_opened_with_what_it_takes(kind: str, tmp_path: Path) -> None:
    more = "max_concurrency = 2\ntemperature = 0.5\nmax_tokens = 64\n"
    settings = read_settings(written(tmp_path, kind, more)).models["shop"]
    assert type(settings) is KINDS[kind]
    model = open_model("shop", settings, tmp_path)
    assert type(model) is MADE[kind]
    assert model.max_concurrency == 2


def test_no_kind_is_forgotten_here() -> None:
    assert set(KINDS) == set(MADE)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_left_out_is_the_adapter_s_own_default(kind: str) -> None:
    takes = inspect.signature(MADE[kind]).parameters
    settings = KINDS[kind](model="m-1")
    for field in KINDS[kind].__struct_fields__:
        if field not in {"model", "base_url", "api_key_env"}:
            assert getattr(settings, field) == takes[field].default, field


def test_the_embedded_model_has_its_own_settings(tmp_path: Path) -> None:
    more = "threads = 2\ncontext = 1024\nseed = 7\n"
    settings = read_settings(written(tmp_path, "local", more)).models["shop"]
    assert settings == LocalSettings(model="own.gguf", threads=2, context=1024, seed=7)
    assert open_model("shop", settings, tmp_path).name == "own"


def test_a_hosted_model_has_a_timeout_and_a_key_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOUSE_KEY", "sk-house")
    with FakeProvider(Breaks(Phase.REQUEST, "hang")) as provider:
        settings = OpenAISettings(model="m-1", base_url=provider.base_url, api_key_env="HOUSE_KEY", timeout=0.1)
        with pytest.raises(ModelError, match=r"no answer within 0\.1 s"):
            anyio.run(open_model("shop", settings).ask, Query(role=Role.JUDGE, prompt="?"))
    assert provider.asked[0].headers["authorization"] == "Bearer sk-house"


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        (
            OpenAISettings(model="m", api_key_env="NO_SUCH"),
            r"models\.shop: the environment variable that api_key_env names is not set",
        ),
        (AnthropicSettings(model="m", max_tokens=0), r"models\.shop: max_tokens=0 leaves no room"),
        (ResponsesSettings(model="m", base_url="nowhere"), r"models\.shop: base_url is no address"),
        (PydanticAISettings(model="nosuch:m"), r"models\.shop: Pydantic AI makes no model of 'nosuch:m'"),
        (LocalSettings(threads=0), r"models\.shop: threads of a local model is 0"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_name(settings: ModelSettings, fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        open_model("shop", settings)


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ('kind = "opnai"\nmodel = "m"', "there is no kind 'opnai'; known: local, openai, openai-responses, anthropic"),
        ('model = "m"', "'kind' is missing"),
        ('kind = 5\nmodel = "m"', "models.shop.kind must be text, not a whole number"),
        ('kind = "openai"', "'model' is missing"),
        ('kind = "openai"\nmodel = ""', "a model without a name: give the one that the provider knows it by"),
        (
            'kind = "openai"\nmodel = "m"\nmodle = "m"',
            "unknown key 'modle'; did you mean 'model'?",
        ),
        ('kind = "openai"\nmodel = "m"\ntime_out = 3', "did you mean 'timeout'?"),
        ('kind = "openai"\nmodel = "m"\ntimeout = "3"', "models.shop.timeout must be a number, not text"),
        (
            'kind = "local"\nprice = { input = 1.0, output = 2.0 }',
            "unknown key 'price'; known: context, kind, max_concurrency",
        ),
        ('kind = "anthropic"\nmodel = "m"\ntop_logprobs = 3', "unknown key 'top_logprobs'; "),
        ('kind = "pydantic-ai"\nmodel = "m"\nbase_url = "http://x"', "unknown key 'base_url'; "),
        ('kind = "openai"\nmodel = "m"\nprice = { input = -1.0, output = 2.0 }', "-1.0 is no price"),
    ],
)
def test_what_does_not_belong_into_a_table_is_told_with_what_does(table: str, fault: str, tmp_path: Path) -> None:
    path = tmp_path / "theodolite.toml"
    path.write_text(f"[models.shop]\n{table}\n", encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        read_settings(path)
    assert str(raised.value).startswith((f"{path}: models.shop: ", f"{path}: models.shop."))
    assert fault in str(raised.value)


def test_a_model_that_is_no_table_is_told(tmp_path: Path) -> None:
    path = tmp_path / "theodolite.toml"
    path.write_text('[models]\nshop = "openai"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"models\.shop must be a table, not text"):
        read_settings(path)


def test_a_role_for_a_model_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(ConfigError, match=r"panel\.judge: no model is named 'b'; known: a"):
        players(PanelSettings(subject="a", judge="b"), {"a": OpenAISettings(model="m")})


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("inf"), float("nan")])
def test_a_timeout_is_a_time(timeout: float) -> None:
    with pytest.raises(ValueError, match="is none: give a number above 0"):
        PanelSettings(timeout=timeout)


@pytest.mark.parametrize(
    ("spec", "meant"),
    [
        ("local", LocalSettings()),
        ("local:weights/own.gguf", LocalSettings(model="weights/own.gguf")),
        ("openai:gpt-5.1", OpenAISettings(model="gpt-5.1")),
        ("openai:ft:gpt:x", OpenAISettings(model="ft:gpt:x")),
        ("openai-responses:m", ResponsesSettings(model="m")),
        ("pydantic-ai:google:m", PydanticAISettings(model="google:m")),
    ],
)
def test_a_word_on_the_command_line_names_a_kind_and_a_model(spec: str, meant: ModelSettings) -> None:
    assert chosen(spec, []) == meant


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
    assert settings.models["shop"] == OpenAISettings(model="m-1", price=PRICE)
    assert settings.budget.day.cost == 5.0
    for wrong, fault in (
        ("[budget.dya]\ncost = 5.0\n", r"did you mean 'budget\.day'"),
        ("[budget.day]\ncost = -1.0\n", r"budget\.day"),
        ("[panel]\ntimeout = 0.0\n", "panel"),
    ):
        path.write_text(wrong, encoding="utf-8")
        with pytest.raises(ConfigError, match=fault):
            read_settings(path)
