"""The detector under its original's names, and each behavior that the original was seen to have, answered right.

The original is axor-classifier-simple 0.2.1 with the model of its own trainer; what it answered stands beside each
case. What its sibling, axor-classifier-llm, does with answers and prompts has its cases in tests/verifiers.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import msgspec
import pytest

from theodolite.api.anomaly import AnomalyClass, AnomalyResult, MLAnomalyDetector, NormalizedIntent
from theodolite.core.errors import CalibrationError, ConfigError
from theodolite.detectors.anomaly.scoring import shipped

_T = TypeVar("_T")

of = NormalizedIntent.of
READ = of("read", operation="file_read", target_kind="workdir", provenance="repo")
PAGE = of(
    "web_fetch",
    operation="network_request",
    target_kind="external_url",
    destination_kind="external_domain",
    provenance="external_web",
    data_flow="local_to_external",
)
KEYS = of("read", operation="file_read", target_kind="secret", provenance="repo", reads_secret_like_data=True)
OUT = of(
    "bash",
    operation="network_request",
    target_kind="external_url",
    destination_kind="external_domain",
    provenance="unknown",
    data_flow="local_to_external",
)
CHAIN = [PAGE, KEYS, OUT]
METADATA = of("bash", operation="network_request", target_kind="cloud_metadata", destination_kind="private_network")
SOCKET = of("bash", operation="other", target_kind="docker_socket")


def flagged(window: Sequence[NormalizedIntent]) -> list[NormalizedIntent]:
    """Set the sticky flags as a host does."""
    external = secret = False
    found: list[NormalizedIntent] = []
    for intent in window:
        found.append(msgspec.structs.replace(intent, after_external_read=external, after_secret_access=secret))
        external = external or intent.provenance == "external_web"
        secret = secret or intent.reads_secret_like_data
    return found


def score(window: Sequence[NormalizedIntent], hint: str = "", policy: str = "") -> AnomalyResult:
    return MLAnomalyDetector().score_sync(window=window, task_signal_hint=hint, policy_name=policy)


@pytest.mark.parametrize("window", [CHAIN, flagged(CHAIN)], ids=["by order alone", "with flags"])
def test_a_bare_chain_is_critical(window: list[NormalizedIntent]) -> None:
    """The original: 1.00."""
    result = score(window)
    assert (result.score, result.cls) == (1.0, AnomalyClass.CRITICAL)
    assert {"secret_access_after_external_read", "network_after_secret"} <= set(result.reasons)


@pytest.mark.parametrize("later", [10, 100])
@pytest.mark.parametrize("window", [CHAIN, flagged(CHAIN)], ids=["by order alone", "with flags"])
def test_the_same_chain_is_critical_whatever_is_read_afterwards(window: list[NormalizedIntent], later: int) -> None:
    """The original: 0.000, normal, after ten reads."""
    result = score([*window, *[READ] * later])
    assert (result.score, result.cls) == (1.0, AnomalyClass.CRITICAL)
    assert "exfiltration" in result.reasons


def test_a_host_that_shows_the_last_calls_alone_hides_no_chain() -> None:
    """The flags of the outbound call tell of both; which came first is not known, and the worse is taken."""
    assert score(flagged(CHAIN)[-1:]).cls is AnomalyClass.CRITICAL


@pytest.mark.parametrize("window", [[SOCKET], [READ] * 9 + [SOCKET], [SOCKET] + [READ] * 50])
def test_a_docker_socket_is_critical_alone(window: list[NormalizedIntent]) -> None:
    """The original: 0.000, normal; its sibling's prompt calls it critical."""
    result = score(window)
    assert (result.cls, result.reasons[0]) == (AnomalyClass.CRITICAL, "docker_socket")


@pytest.mark.parametrize("window", [[METADATA], [READ] * 9 + [METADATA], [METADATA] + [READ] * 50])
def test_cloud_metadata_is_critical_alone(window: list[NormalizedIntent]) -> None:
    """The original: 0.013, normal; its sibling's prompt calls it critical."""
    result = score(window)
    assert (result.cls, result.reasons[0]) == (AnomalyClass.CRITICAL, "cloud_metadata")


def test_an_unknown_operation_again_and_again_is_suspicious() -> None:
    """The original: 0.000. Arguable: nobody knows what it does. Not knowing is a reason to look, and none to stop."""
    strange = of("relay", operation="power_state_change", target_kind="workdir", provenance="user")
    result = score([strange] * 3)
    assert result.cls is AnomalyClass.SUSPICIOUS
    assert "unknown_operation" in result.reasons
    # Once among ordinary calls it is a tool that nobody has listed yet.
    assert score([READ, strange, READ]).cls is AnomalyClass.NORMAL


def test_the_case_of_a_word_says_nothing() -> None:
    """The original: 0.000, since a word that it does not know counts as none at all."""
    shouted = [
        of(
            "WEB_FETCH",
            operation="Network_Request",
            target_kind="EXTERNAL_URL",
            destination_kind="External_Domain",
            provenance="EXTERNAL_WEB",
            data_flow="LOCAL_TO_EXTERNAL",
        ),
        of("READ", operation="FILE_READ", target_kind="Secret", provenance="REPO", reads_secret_like_data=True),
        OUT,
    ]
    assert score(shouted) == score(CHAIN)


def test_ordinary_fetches_are_not_suspicious_however_many() -> None:
    """The original: 0.551, suspicious, for eight. Arguable as polling of a server; research looks the same."""
    for count in (1, 8, 10):
        assert score([PAGE] * count).cls is AnomalyClass.NORMAL


def test_a_reversed_chain_is_suspicious_and_breaks_no_rule() -> None:
    """The original: 0.607, suspicious.

    Arguable: what was sent came before the secret, so that it cannot hold it, and the page came last, so that it cannot
    have asked for it. A page that is fetched after a secret was read can still carry it out in its address.
    """
    result = score([OUT, KEYS, PAGE])
    assert result.cls is not AnomalyClass.NORMAL
    assert "exfiltration" not in result.reasons
    assert "network_after_secret" in result.reasons


def test_an_empty_window_is_normal() -> None:
    """The original: the same."""
    assert score([]) == AnomalyResult(0.0, AnomalyClass.NORMAL)


def test_the_flow_into_a_shell_is_critical() -> None:
    shell = of("bash", operation="execute_generated_code", provenance="external_web", data_flow="external_to_shell")
    assert score([shell]).cls is AnomalyClass.CRITICAL


def test_reasons_are_what_raised_the_score_the_most_first() -> None:
    """The original's reasons are rules of their own, and stay when the score falls to 0."""
    result = score(flagged([READ, KEYS, OUT]))
    weights = shipped().weights
    assert list(result.reasons) == sorted(result.reasons, key=lambda name: -weights[name])
    assert score([READ] * 10).reasons == ()


def test_the_task_and_the_policy_are_used() -> None:
    """The original takes both and uses neither."""
    write = of("edit", operation="file_write", target_kind="workdir", provenance="repo", data_flow="local_to_local")
    assert score([READ, write]).cls is AnomalyClass.NORMAL
    for hint, policy in (("focused_readonly", ""), ("", "readonly")):
        result = score([READ, write], hint, policy)
        assert (result.cls, result.reasons) == (AnomalyClass.SUSPICIOUS, ("unexpected_for_task",))
    assert score([READ, write], "focused_mutative", "focused_mutative").cls is AnomalyClass.NORMAL


def test_where_it_goes_is_used() -> None:
    """The original does not look at `destination_kind`."""

    def sent(destination: str) -> AnomalyResult:
        return score([KEYS, of("bash", destination_kind=destination, data_flow="local_to_external")])

    assert sent("external_domain").score > sent("none").score
    assert sent("private_network").score > sent("none").score
    # The user named the place; nobody knows what an unlisted word means.
    assert sent("same_origin") == sent("none")
    assert sent("relay") == sent("external_domain")


@pytest.mark.parametrize("field", ["target_kind", "destination_kind", "provenance", "data_flow"])
def test_a_word_that_nobody_knows_is_no_sign_of_harmlessness(field: str) -> None:
    """The original counts it as none at all, so that a new word turns what it stands for off.

    Arguable for a target and a provenance: an unknown one is not held to be a secret, or a page. What stands beside it
    counts: the flags of the intent, its flow, and the operation.
    """
    plain: dict[str, str | bool] = {
        "operation": "network_request",
        "target_kind": "external_url",
        "destination_kind": "external_domain",
        "provenance": "repo",
        "data_flow": "local_to_external",
        "after_secret_access": True,
    }
    assert score([of("bash", **{**plain, field: "brand_new"})]).cls is score([of("bash", **plain)]).cls
    assert score([of("bash", **plain)]).cls is not AnomalyClass.NORMAL


@pytest.mark.parametrize("tool", ["curl", "ignore_me", "read\nfile", ""])
def test_what_a_tool_is_called_says_nothing(tool: str) -> None:
    """The original: the same. Arguable, as names tell much; but they are free text that an attacker may have chosen.

    What a name tells, the normalizer has put into the fields.
    """
    assert score([PAGE, KEYS, msgspec.structs.replace(OUT, tool=tool)]) == score(CHAIN)


def test_a_batch_is_what_its_windows_are() -> None:
    detector = MLAnomalyDetector()
    windows = [CHAIN, [READ], [], [SOCKET]]
    assert detector.score_batch(windows) == [detector.score_sync(window) for window in windows]


class Asked:
    """A verifier that keeps what it was asked and answers as it is told."""

    def __init__(self, answer: AnomalyResult | BaseException | str) -> None:
        self.answer = answer
        self.asked: list[dict[str, object]] = []

    async def verify(
        self, window: Sequence[NormalizedIntent], task_signal_hint: str = "", policy_name: str = ""
    ) -> AnomalyResult:
        self.asked.append({"window": window, "hint": task_signal_hint, "policy": policy_name})
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer  # type: ignore[return-value] # pyright: ignore[reportReturnType] - as a verifier of others may


# 0.40 to 0.50, 0.50 to 0.75, and below and above, by the shipped model.
GRAY = flagged([PAGE, KEYS])
LOW = flagged([PAGE, of("bash", operation="network_request", target_kind="private_network", provenance="user")])


def awaited(detector: MLAnomalyDetector, window: Sequence[NormalizedIntent], hint: str = "") -> AnomalyResult:
    async def ask() -> AnomalyResult:
        return await detector.score(window=window, task_signal_hint=hint, policy_name="p")

    return anyio.run(ask)


SECOND = AnomalyResult(0.12, AnomalyClass.NORMAL, ("fine",))


def test_a_verifier_that_contradicts_itself_is_taken_at_its_worse_word() -> None:
    """The original takes both as they come: critical with a score of 0.05 passes whoever looks at scores."""
    verifier = Asked(AnomalyResult(0.05, AnomalyClass.CRITICAL, ("x",)))
    result = awaited(MLAnomalyDetector(gray_zone_verifier=verifier), GRAY)
    assert (result.score, result.cls, result.reasons) == (0.75, "critical", ("x", "score_and_class_disagree"))


def test_only_the_gray_zone_is_asked_about_and_the_answer_is_returned() -> None:
    assert 0.5 <= score(GRAY).score < 0.75
    assert 0.4 <= score(LOW).score < 0.5
    for window, asked in (([READ], False), (LOW, False), (GRAY, True), (CHAIN, False), ([], False)):
        verifier = Asked(SECOND)
        result = awaited(MLAnomalyDetector(gray_zone_verifier=verifier), window, "research")
        assert bool(verifier.asked) is asked
        assert result == (SECOND if asked else score(window, "research", "p"))
    verifier = Asked(SECOND)
    awaited(MLAnomalyDetector(gray_zone_verifier=verifier), GRAY, "research")
    assert verifier.asked == [{"window": GRAY, "hint": "research", "policy": "p"}]


def test_the_threshold_of_the_gray_zone_is_a_setting() -> None:
    verifier = Asked(SECOND)
    assert awaited(MLAnomalyDetector(gray_zone_verifier=verifier, gray_zone_threshold=0.40), LOW) == SECOND
    assert awaited(MLAnomalyDetector(gray_zone_verifier=verifier, gray_zone_threshold=0.75), GRAY) == score(GRAY)


@pytest.mark.parametrize("answer", [RuntimeError("down\n##[error]"), TimeoutError(), ValueError("x"), "no result"])
def test_a_verifier_that_fails_leaves_the_models_own_score_with_a_warning(
    answer: BaseException | str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        result = awaited(MLAnomalyDetector(gray_zone_verifier=Asked(answer)), GRAY)
    assert result == score(GRAY)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "\n" not in record.getMessage()


def test_what_a_verifier_raised_is_redacted_before_it_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    broken = Asked(RuntimeError("Authorization: Bearer sk-live-4f9a8c7e6d5b4a392817, asked by anna@example.org"))
    with caplog.at_level(logging.WARNING):
        awaited(MLAnomalyDetector(gray_zone_verifier=broken), GRAY)
    (record,) = caplog.records
    said = record.getMessage()
    assert "RuntimeError: " in said
    assert "[REDACTED:" in said
    assert "4f9a8c7e" not in said
    assert "anna@" not in said


def test_where_it_fails_closed_a_verifier_that_fails_makes_it_critical(caplog: pytest.LogCaptureFixture) -> None:
    detector = MLAnomalyDetector(gray_zone_verifier=Asked(RuntimeError()), fail_closed_on_verifier_error=True)
    with caplog.at_level(logging.WARNING):
        result = awaited(detector, GRAY)
    assert (result.cls, result.reasons[0]) == (AnomalyClass.CRITICAL, "verifier_error_fail_closed")
    assert result.score >= 0.75
    assert caplog.records


def test_being_cancelled_is_no_failure_of_the_verifier() -> None:
    class Sleeps:
        async def verify(
            self, window: Sequence[NormalizedIntent], task_signal_hint: str = "", policy_name: str = ""
        ) -> AnomalyResult:
            del window, task_signal_hint, policy_name
            await anyio.sleep(30)
            return SECOND

    async def main() -> bool:
        with anyio.move_on_after(0.05) as scope:
            await MLAnomalyDetector(gray_zone_verifier=Sleeps()).score(window=GRAY)
        return scope.cancelled_caught

    assert anyio.run(main)


@dataclass(frozen=True)
class Foreign:
    """An intent as axor-core has it."""

    tool: str = "curl"
    operation: str = "network_request"
    target_kind: str = "cloud_metadata"
    destination_kind: str = "external_domain"
    provenance: str = "unknown"
    reads_secret_like_data: bool = False
    writes_outside_workdir: bool = False
    executes_generated_code: bool = False
    after_external_read: bool = False
    after_secret_access: bool = False
    data_flow: str = "none"
    target_resource_reputation: float = 0.0
    target_container_reputation: float = 0.0


def test_reputations_say_nothing() -> None:
    """The original: the same. They come from other sessions, through axor-sentinel, which nothing here speaks to."""
    plain, tainted = Foreign(target_kind="workdir"), Foreign("x", target_kind="workdir", target_resource_reputation=1.0)
    detector = MLAnomalyDetector()
    assert detector.score_sync([tainted]) == detector.score_sync([plain])  # type: ignore[list-item] # pyright: ignore[reportArgumentType] - as its users have them


def test_intents_of_axor_core_are_taken_over() -> None:
    result = MLAnomalyDetector().score_sync([Foreign()])  # type: ignore[list-item] # pyright: ignore[reportArgumentType] - as its users have them
    assert result.cls is AnomalyClass.CRITICAL


def test_what_is_no_intent_is_named() -> None:
    with pytest.raises(TypeError, match="something in it is none"):
        MLAnomalyDetector().score_sync(["bash"])  # type: ignore[list-item] # pyright: ignore[reportArgumentType] - the mistake


def test_a_model_may_be_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text('{"schema": 1, "version": "2", "bias": 3.0, "weights": {}}', encoding="utf-8")
    assert MLAnomalyDetector(model_path=path).score_sync([READ]).cls is AnomalyClass.CRITICAL
    path.write_text("{", encoding="utf-8")
    with pytest.raises(CalibrationError, match=r"model\.json"):
        MLAnomalyDetector(path)
    with pytest.raises(CalibrationError, match="cannot be read"):
        MLAnomalyDetector(tmp_path)
    # The original loads a pickle, which runs whatever it says: this one would print.
    path.write_bytes(b"cbuiltins\nprint\n(S'run'\ntR.")
    with pytest.raises(CalibrationError, match="is no model"):
        MLAnomalyDetector(path)


def test_the_class_goes_by_the_thresholds_of_the_detector() -> None:
    detector = MLAnomalyDetector(suspicious_threshold=0.1, gray_zone_threshold=0.8, critical_threshold=0.9)
    result = detector.score_sync(GRAY)
    assert (result.cls, result.suspicious, result.critical) == (AnomalyClass.SUSPICIOUS, 0.1, 0.9)
    assert result.score == score(GRAY).score
    assert "score_and_class_disagree" not in result.reasons


def test_settings_that_cannot_hold_are_refused() -> None:
    with pytest.raises(ConfigError, match="gray_zone_threshold"):
        MLAnomalyDetector(gray_zone_threshold=0.9)
    with pytest.raises(ConfigError, match="window_size"):
        MLAnomalyDetector(window_size=0)


def untyped(call: Callable[..., _T]) -> Callable[..., _T]:
    """Return a callable as those see it who check no types."""
    return call


THRESHOLDS = ("suspicious_threshold", "gray_zone_threshold", "critical_threshold")


@pytest.mark.parametrize("name", THRESHOLDS)
@pytest.mark.parametrize("value", [None, "1", [0.5], b"0.5", True, math.nan, math.inf, 10**400])
def test_a_threshold_is_a_number(name: str, value: object) -> None:
    make = untyped(MLAnomalyDetector)
    with pytest.raises(ConfigError, match=name):
        make(**{name: value})


@pytest.mark.parametrize("value", [0, 1, "yes", None])
def test_whether_it_fails_closed_is_yes_or_no(value: object) -> None:
    make = untyped(MLAnomalyDetector)
    with pytest.raises(ConfigError, match="fail_closed_on_verifier_error is True or False"):
        make(fail_closed_on_verifier_error=value)


@pytest.mark.parametrize("path", ["\0", "a\0b", "x" * 5_000, 3, b"model.json", [], "\ud800"])
def test_a_path_that_is_none_is_a_fault_of_the_caller_or_of_the_file(path: object) -> None:
    make = untyped(MLAnomalyDetector)
    with pytest.raises((ConfigError, CalibrationError), match=r"model_path|cannot be read") as raised:
        make(model_path=path)
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("given", [{"hint": None}, {"policy": None}, {"hint": 3}, {"hint": ["readonly"]}])
def test_a_hint_and_a_policy_are_text(given: dict[str, object]) -> None:
    detector = MLAnomalyDetector()
    named = {"hint": "task_signal_hint", "policy": "policy_name"}
    words = {named[name]: value for name, value in given.items()}
    (name,) = words
    one, many, awaitable = untyped(detector.score_sync), untyped(detector.score_batch), untyped(detector.score)
    with pytest.raises(ConfigError, match=f"{name} is text, "):
        one([READ], **words)
    with pytest.raises(ConfigError, match=f"{name} is text, "):
        many([[READ]], **words)
    with pytest.raises(ConfigError, match=f"{name} is text, "):
        anyio.run(partial(awaitable, [READ], **words))


@pytest.mark.parametrize("window", [None, 3, object()])
def test_what_is_no_window_is_named(window: object) -> None:
    detector = MLAnomalyDetector()
    one, many = untyped(detector.score_sync), untyped(detector.score_batch)
    with pytest.raises(TypeError, match="a window holds intents, and this is none"):
        one(window)
    with pytest.raises(TypeError, match=r"(a window holds intents|give windows), and this is none"):
        many(window)


def test_a_window_is_scored_in_well_under_a_millisecond() -> None:
    """The budgets stand in benchmarks/anomaly.py; this one holds on a machine that does other things too."""
    detector = MLAnomalyDetector()
    window = flagged([READ, PAGE, KEYS, READ, OUT, READ, PAGE, READ, READ, READ])
    start = time.thread_time()
    for _ in range(1_000):
        detector.score_sync(window)
    assert time.thread_time() - start < 0.5


def test_a_window_may_be_anything_that_is_gone_through_once() -> None:
    for window in ([METADATA], (METADATA,), iter([METADATA]), (one for one in [METADATA])):
        assert MLAnomalyDetector().score_sync(window=window).score == 1.0
    assert [result.score for result in MLAnomalyDetector().score_batch(iter([iter([METADATA])]))] == [1.0]


def test_what_is_no_verifier_and_no_size_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="no method verify"):
        MLAnomalyDetector(gray_zone_verifier=5)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - the mistake
    for size in (2.5, True, 0):
        with pytest.raises(ConfigError, match="window_size"):
            MLAnomalyDetector(window_size=size)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - the mistake
