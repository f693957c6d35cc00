"""The documented quick start of axor-classifier-llm, line by line, with only its imports changed."""

from __future__ import annotations

import anthropic
import anyio
import pytest

from theodolite.api.anomaly import AnomalyClass, LLMAnomalyVerifier, MLAnomalyDetector, NormalizedIntent
from theodolite.testing.provider import FakeProvider

ANSWER = (
    '{"score": 0.82, "class": "critical", "reasons": ["secret_access_after_external_read", "network_after_secret"]}'
)


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> FakeProvider:
    opened = FakeProvider(ANSWER)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", opened.url)
    return opened


NORMALIZED_INTENTS = [
    NormalizedIntent.of(
        "web_fetch", operation="network_request", target_kind="external_url", provenance="external_web"
    ),
    NormalizedIntent.of(
        "read", operation="file_read", target_kind="secret", reads_secret_like_data=True, after_external_read=True
    ),
]


def test_the_verifier_alone(provider: FakeProvider) -> None:
    async def main() -> None:
        client = anthropic.AsyncAnthropic()
        verifier = LLMAnomalyVerifier(
            client=client,
            model="claude-haiku-4-5-20251001",
            max_tokens=256,
        )
        result = await verifier.verify(
            window=NORMALIZED_INTENTS,
            task_signal_hint="focused_mutative",
            policy_name="focused_mutative",
        )
        assert result.score == 0.82
        assert result.cls is AnomalyClass.CRITICAL
        assert result.reasons == ("secret_access_after_external_read", "network_after_secret")
        await client.close()  # the host's own, which no test may leave to the collector

    with provider:
        anyio.run(main)


def test_the_verifier_behind_the_detector(provider: FakeProvider) -> None:
    async def main() -> None:
        client = anthropic.AsyncAnthropic()
        verifier = LLMAnomalyVerifier(client=client)
        detector = MLAnomalyDetector(
            gray_zone_verifier=verifier,
            gray_zone_threshold=0.50,
        )
        result = await detector.score(window=NORMALIZED_INTENTS)
        assert result.cls is AnomalyClass.CRITICAL
        await client.close()

    with provider:
        anyio.run(main)
    assert len(provider.asked) == 1
