"""The verifier over the wire: the official SDK against a provider on loopback, and models of our own."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import anthropic
import anyio
import httpx2
import pytest

from theodolite.api.anomaly import AnomalyClass, AnomalyResult, LLMAnomalyVerifier, MLAnomalyDetector, NormalizedIntent
from theodolite.core.errors import ConfigError, MissingExtraError, ModelError
from theodolite.models.anthropic import AnthropicModel
from theodolite.models.openai import OpenAIModel
from theodolite.testing.fakes import ScriptedModel
from theodolite.testing.provider import Breaks, FakeProvider, Phase, Responds, Says, Scripted

_T = TypeVar("_T")

GOOD = '{"score": 0.82, "class": "critical", "reasons": ["network_after_secret"]}'
RESULT = AnomalyResult(0.82, AnomalyClass.CRITICAL, ("network_after_secret",))
WINDOW = [
    NormalizedIntent.of(
        "web_fetch", operation="network_request", target_kind="external_url", provenance="external_web"
    ),
    NormalizedIntent.of(
        "read", operation="file_read", target_kind="secret", reads_secret_like_data=True, after_external_read=True
    ),
]


def client(provider: FakeProvider) -> anthropic.AsyncAnthropic:
    http = httpx2.AsyncClient(timeout=5)
    return anthropic.AsyncAnthropic(api_key="sk-1", base_url=provider.url, max_retries=0, http_client=http)


def verified(provider: FakeProvider, *, timeout: float = 5.0, hint: str = "", policy: str = "") -> AnomalyResult:
    async def ask() -> AnomalyResult:
        async with client(provider) as sdk:
            verifier = LLMAnomalyVerifier(client=sdk, timeout=timeout)
            return await verifier.verify(window=WINDOW, task_signal_hint=hint, policy_name=policy)

    return anyio.run(ask)


def test_the_request_is_the_originals_with_intents_and_nothing_else() -> None:
    with FakeProvider(GOOD) as provider:
        assert verified(provider, hint="research", policy="focused_readonly") == RESULT
    (asked,) = provider.asked
    assert asked.path == "/v1/messages"
    assert asked.body["model"] == "claude-haiku-4-5-20251001"
    assert asked.body["max_tokens"] == 256
    assert asked.body["messages"] == [
        {
            "role": "user",
            "content": "Task: research\nPolicy: focused readonly\nCalls:\n"
            "tool=web_fetch op=network_request target=external_url dest=none prov=external_web flow=none\n"
            "tool=read op=file_read target=secret dest=none prov=unknown flow=none "
            "[reads_secret, after_external_read]",
        }
    ]
    assert "never instructions" in str(asked.body["system"])


@pytest.mark.parametrize("text", ["I cannot say.", "[]", "null", GOOD[:-3], GOOD.replace("0.82", "NaN"), ""])
def test_an_answer_that_cannot_be_read_is_worth_a_half_with_a_warning(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    with FakeProvider(text) as provider, caplog.at_level(logging.WARNING, logger="theodolite"):
        result = verified(provider)
    assert result == AnomalyResult(0.5, AnomalyClass.SUSPICIOUS, ("verifier_parse_error",))
    assert [record.levelno for record in caplog.records if record.name.startswith("theodolite")] == [logging.WARNING]


@pytest.mark.parametrize(
    "script",
    [
        Responds(status=500),
        Responds(status=429),
        Responds(status=401),
        Responds(body="no json"),
        Breaks(Phase.REQUEST),
        Breaks(Phase.BODY, "reset"),
        Breaks(Phase.HEADERS, "hang"),
    ],
)
def test_whatever_a_provider_does_the_detector_keeps_its_own_score_with_a_warning(
    script: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    async def ask(provider: FakeProvider, *, closed: bool) -> AnomalyResult:
        async with client(provider) as sdk:
            verifier = LLMAnomalyVerifier(client=sdk, timeout=0.5)
            detector = MLAnomalyDetector(gray_zone_verifier=verifier, fail_closed_on_verifier_error=closed)
            return await detector.score(window=WINDOW)

    own = MLAnomalyDetector().score_sync(window=WINDOW)
    with FakeProvider(script) as provider, caplog.at_level(logging.WARNING, logger="theodolite"):
        assert anyio.run(lambda: ask(provider, closed=False)) == own
        assert anyio.run(lambda: ask(provider, closed=True)).cls is AnomalyClass.CRITICAL
    assert len([record for record in caplog.records if record.name.startswith("theodolite")]) == 2


def test_it_waits_no_longer_than_it_may() -> None:
    with FakeProvider(GOOD, delay=5.0) as provider, pytest.raises(TimeoutError):
        verified(provider, timeout=0.2)


def test_a_refusal_is_no_verdict() -> None:
    with FakeProvider(Says(text="", refusal=True, finish="refusal")) as provider:
        assert verified(provider).reasons == ("verifier_parse_error",)


def test_any_model_of_ours_serves() -> None:
    async def ask(model: object) -> AnomalyResult:
        return await LLMAnomalyVerifier(client=model).verify(window=WINDOW)

    assert anyio.run(ask, ScriptedModel(GOOD)) == RESULT
    with FakeProvider(GOOD) as provider:
        for model in (
            AnthropicModel("claude-haiku-4-5", base_url=provider.url, api_key="none"),
            OpenAIModel("gpt-5.1", base_url=provider.base_url, api_key="none"),
        ):
            assert anyio.run(ask, model) == RESULT
    with pytest.raises(ModelError):
        anyio.run(ask, ScriptedModel(ModelError("nobody listens")))


def test_a_client_that_waits_is_refused() -> None:
    with pytest.raises(ConfigError, match="AsyncAnthropic"):
        LLMAnomalyVerifier(client=anthropic.Anthropic(api_key="sk-1"))


@pytest.mark.parametrize("client", [None, "claude", object()])
def test_what_is_no_client_is_named(client: object) -> None:
    with pytest.raises(ConfigError, match=type(client).__name__):
        LLMAnomalyVerifier(client=client)


def untyped(call: Callable[..., _T]) -> Callable[..., _T]:
    """Return a callable as those see it who check no types."""
    return call


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("max_tokens", value) for value in (0, -1, "3", None, 2.5, True, [3])],
        *[("timeout", value) for value in (0.0, float("nan"), float("inf"), "3", None, True, [3])],
        *[("model", value) for value in ("", 3, None, ["m"])],
    ],
)
def test_settings_that_cannot_hold_are_refused(name: str, value: object) -> None:
    make = untyped(LLMAnomalyVerifier)
    with pytest.raises(ConfigError, match=f"the verifier's {name} is "):
        make(ScriptedModel(GOOD), **{name: value})


@pytest.mark.parametrize("name", ["task_signal_hint", "policy_name"])
def test_a_hint_and_a_policy_are_text(name: str) -> None:
    verify = untyped(LLMAnomalyVerifier(ScriptedModel(GOOD)).verify)
    with pytest.raises(ConfigError, match=f"{name} is text, "):
        anyio.run(partial(verify, WINDOW, **{name: None}))


ABSENT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "anthropic":
            raise ModuleNotFoundError("No module named " + repr(name), name=name)

sys.meta_path.insert(0, Absent())
from theodolite.api.anomaly import LLMAnomalyVerifier
try:
    LLMAnomalyVerifier(client=object())
except ImportError as error:
    print(type(error).__name__, error)
"""


def test_without_the_sdk_an_import_error_names_the_extra() -> None:
    done = subprocess.run([sys.executable, "-c", ABSENT], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("MissingExtraError")
    assert "pip install 'theodolite[anthropic]'" in done.stdout
    assert issubclass(MissingExtraError, ImportError)
