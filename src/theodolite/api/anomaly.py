"""The anomaly detector and its verifier under the names of axor-classifier-simple and axor-classifier-llm.

    detector = MLAnomalyDetector(gray_zone_verifier=LLMAnomalyVerifier(client=anthropic.AsyncAnthropic()))
    result = await detector.score(window=intents)

The same code judges live sessions as `theodolite.detectors.anomaly`.
"""

from __future__ import annotations

import importlib.util
import logging
import math
import sys
from collections.abc import Awaitable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, TypeGuard

import anyio

from theodolite.core.anomaly import CRITICAL, GRAY_ZONE, SUSPICIOUS, AnomalyClass, AnomalyResult
from theodolite.core.errors import CalibrationError, ConfigError, MissingExtraError
from theodolite.core.inquiry import Query
from theodolite.core.intent import (
    DataFlow,
    DestinationKind,
    NormalizedIntent,
    Operation,
    Provenance,
    TargetKind,
)
from theodolite.core.model import Model
from theodolite.core.reading import Cause, Failure
from theodolite.core.redaction import Scrubber
from theodolite.core.text import brief, printable
from theodolite.detectors.anomaly.scoring import WINDOW, Coefficients, Scoring
from theodolite.detectors.anomaly.tasks import check_words
from theodolite.redactors.rules import RuleRedactor
from theodolite.runtime.drive import attempt
from theodolite.verifiers.anomaly import PARSE_ERROR, query_of, read_result

__all__ = (
    "AnomalyClass",
    "AnomalyResult",
    "DataFlow",
    "DestinationKind",
    "LLMAnomalyVerifier",
    "LLMVerifier",
    "MLAnomalyDetector",
    "NormalizedIntent",
    "Operation",
    "Provenance",
    "TargetKind",
)

_LOG = logging.getLogger(__name__)
# Seconds for one opinion. Our choice: a call waits for it.
TIMEOUT = 30.0
# Characters of a path that an error shows.
_PATH = 200


class LLMVerifier(Protocol):
    """Gives a second opinion of a window. May raise anything: the detector then keeps its own score."""

    def verify(
        self, window: Sequence[NormalizedIntent], task_signal_hint: str = "", policy_name: str = ""
    ) -> Awaitable[AnomalyResult]:
        """Return what the window is worth."""
        ...


class MLAnomalyDetector:
    """Scores windows of intents, oldest first.

    The last `window_size` intents are scored by a model that ships with the package, or by the one of `model_path`;
    three hard rules (cloud metadata, docker socket, external read then secret then outbound) hold over the whole
    window, however long, and make the score 1. A tool class that the hint or the policy leave out raises it.

    A suspicious score from `gray_zone_threshold` on goes to `gray_zone_verifier`, whose result is returned; if that
    raises, the detector's own score is, with a warning, or a critical one with `fail_closed_on_verifier_error`. Safe
    for threads. Cost: about a microsecond an intent.

    Raises CalibrationError for a model that cannot be read, ConfigError for thresholds out of order and for what is of
    a wrong type; when it scores, ConfigError for a hint or a policy that is no text, TypeError for what is no window.

    >>> detector = MLAnomalyDetector()
    >>> page = NormalizedIntent(tool="web_fetch", operation="network_request", target_kind="external_url",
    ...     destination_kind="external_domain", provenance="external_web")
    >>> detector.score_sync(window=[page] * 8).cls.value
    'normal'
    """

    def __init__(
        self,
        model_path: Path | str | None = None,
        gray_zone_verifier: LLMVerifier | None = None,
        *,
        window_size: int = WINDOW,
        gray_zone_threshold: float = GRAY_ZONE,
        suspicious_threshold: float = SUSPICIOUS,
        critical_threshold: float = CRITICAL,
        fail_closed_on_verifier_error: bool = False,
    ) -> None:
        _check_thresholds(suspicious_threshold, gray_zone_threshold, critical_threshold)
        if type(window_size) is not int or window_size < 1:
            raise ConfigError(
                f"window_size is how many intents to look at, a whole number from 1, not {brief(window_size)}"
            )
        if not (gray_zone_verifier is None or callable(getattr(gray_zone_verifier, "verify", None))):
            raise ConfigError(f"gray_zone_verifier has no method verify: {type(gray_zone_verifier).__name__}")
        if not isinstance(fail_closed_on_verifier_error, bool):  # pyright: ignore[reportUnnecessaryIsInstance] - of untyped callers
            raise ConfigError(
                f"fail_closed_on_verifier_error is True or False, not {brief(fail_closed_on_verifier_error)}"
            )
        self._scoring = Scoring(
            None if model_path is None else _model(model_path),
            window_size=window_size,
            suspicious=suspicious_threshold,
            critical=critical_threshold,
        )
        self._verifier = gray_zone_verifier
        self._threshold = gray_zone_threshold
        self._critical = critical_threshold
        self._fail_closed = fail_closed_on_verifier_error

    async def score(
        self, window: Iterable[NormalizedIntent], task_signal_hint: str = "", policy_name: str = ""
    ) -> AnomalyResult:
        """Return what a window is worth; in the gray zone, what the verifier says. Does not raise for what it does."""
        check_words(task_signal_hint=task_signal_hint, policy_name=policy_name)
        known = _own(window)
        result = self._scoring.score(known, task_signal_hint, policy_name)
        verifier = self._verifier
        if verifier is None or result.cls is not AnomalyClass.SUSPICIOUS or result.score < self._threshold:
            return result
        ask = partial(verifier.verify, window=list(known), task_signal_hint=task_signal_hint, policy_name=policy_name)
        second = await attempt(ask, "gray_zone_verifier", "1")
        return self._without(result, second) if isinstance(second, Failure) else self._checked(result, second)

    def score_sync(
        self, window: Iterable[NormalizedIntent], task_signal_hint: str = "", policy_name: str = ""
    ) -> AnomalyResult:
        """Return what a window is worth by the model and the rules alone; nobody is asked."""
        check_words(task_signal_hint=task_signal_hint, policy_name=policy_name)
        return self._scoring.score(_own(window), task_signal_hint, policy_name)

    def score_batch(
        self, windows: Iterable[Iterable[NormalizedIntent]], task_signal_hint: str = "", policy_name: str = ""
    ) -> list[AnomalyResult]:
        """Return what each of many windows is worth, as `score_sync`; fastest where they slide along one stream."""
        check_words(task_signal_hint=task_signal_hint, policy_name=policy_name)
        if not isinstance(windows, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] - of untyped callers
            raise TypeError(f"give windows, and this is none: {type(windows).__name__}")
        return self._scoring.score_batch(map(_own, windows), task_signal_hint, policy_name)

    def _checked(self, result: AnomalyResult, second: object) -> AnomalyResult:
        if isinstance(second, AnomalyResult):
            return second
        # A verifier of somebody's own may bring any type.
        fault = Failure(
            detector="gray_zone_verifier", version="1", cause=Cause.ERROR, detail=f"gave {type(second).__name__}"
        )
        return self._without(result, fault)

    def _without(self, result: AnomalyResult, fault: Failure) -> AnomalyResult:
        # A verifier's SDK may quote keys and content; no operator's redactor is known here.
        detail = Scrubber(RuleRedactor(), (), ()).quote(fault.detail)
        _LOG.warning("the gray-zone verifier failed (%s): %s", fault.cause, ascii(detail))
        if not self._fail_closed:
            return result
        score = max(result.score, self._critical)
        reasons = ("verifier_error_fail_closed", *result.reasons)
        return AnomalyResult(score, AnomalyClass.CRITICAL, reasons, result.suspicious, result.critical)


def _check_thresholds(suspicious: object, gray_zone: object, critical: object) -> None:
    given = {"suspicious_threshold": suspicious, "gray_zone_threshold": gray_zone, "critical_threshold": critical}
    last = 0.0
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(f"{name} is a number in [0, 1], not {brief(value)}")
        if not last <= value <= 1.0:
            raise ConfigError(
                f"{name} is {brief(value)}: need 0 <= suspicious_threshold <= gray_zone_threshold <= "
                f"critical_threshold <= 1, not {', '.join(map(brief, given.values()))}"
            )
        last = value


def _model(given: object) -> Coefficients:
    if not isinstance(given, str | Path):
        raise ConfigError(f"model_path is the path of a JSON file, not {type(given).__name__}")
    name = str(given) if len(str(given)) <= _PATH else f"{str(given)[:_PATH]}\N{HORIZONTAL ELLIPSIS}"
    try:
        document = Path(given).read_bytes()
    except (OSError, ValueError) as error:  # a NUL in a path is a ValueError
        raise CalibrationError(f"the model {printable(name)!r} cannot be read: {_why(error)}") from error
    return Coefficients.load(document, name)


def _why(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__


_OUR_KIND: frozenset[type] = frozenset({NormalizedIntent})
_FIELDS = tuple(name for name in NormalizedIntent.__struct_fields__ if name not in {"permission", "effect"})


def _own(given: Iterable[object]) -> Sequence[NormalizedIntent]:
    """Return a window of our own intents; those of axor-core, which have the same fields, are taken over.

    All but its two reputations: how often a resource or a container was tainted in other sessions is for axor-sentinel
    to know, no model or prompt of axor's own reads them, and a number that others can raise would be one more way in.
    """
    # An iterator can be looked through only once, and what is left of it is an empty window: nothing to worry about.
    try:
        window = given if isinstance(given, list | tuple) else list(given)
    except TypeError as error:
        raise TypeError(f"a window holds intents, and this is none: {type(given).__name__}") from error
    if _ours(window):
        return window
    try:
        return [
            one
            if isinstance(one, NormalizedIntent)
            else NormalizedIntent(**{name: getattr(one, name) for name in _FIELDS})
            for one in window
        ]
    except AttributeError as error:
        raise TypeError(f"a window holds intents, and something in it is none: {error}") from error


def _ours(window: Sequence[object]) -> TypeGuard[Sequence[NormalizedIntent]]:
    return _OUR_KIND.issuperset(map(type, window))


class _Block(Protocol):
    @property
    def text(self) -> str: ...


class _Message(Protocol):
    @property
    def content(self) -> Sequence[_Block]: ...


class _Messages(Protocol):
    def create(self, **request: object) -> Awaitable[_Message]: ...


class _Client(Protocol):
    """What is used of anthropic.AsyncAnthropic."""

    @property
    def messages(self) -> _Messages: ...


def _is_model(client: object) -> TypeGuard[Model]:
    return callable(getattr(client, "ask", None))


def _has_sdk() -> bool:
    try:
        return importlib.util.find_spec("anthropic") is not None
    except ImportError:
        return False


def _is_client(client: object) -> TypeGuard[_Client]:
    """Whether something is a client of Anthropic's SDK. Raises MissingExtraError and ConfigError."""
    if not _has_sdk():
        raise MissingExtraError(extra="anthropic", needed_for="verifiers that ask Anthropic's models")
    # The SDK takes over a second to import; who has a client of it has imported it.
    sync: object = getattr(sys.modules.get("anthropic"), "Anthropic", None)
    if isinstance(sync, type) and isinstance(client, sync):
        raise ConfigError("the verifier's client waits without letting others work: give anthropic.AsyncAnthropic()")
    if not callable(getattr(getattr(client, "messages", None), "create", None)):
        raise ConfigError(
            f"the verifier's client is a {type(client).__name__}: give anthropic.AsyncAnthropic(), or a model of ours"
        )
    return True


def _check_settings(model: object, max_tokens: object, timeout: object) -> None:
    if not (isinstance(model, str) and model):
        raise ConfigError(f"the verifier's model is the provider's name for it, not {brief(model)}")
    if type(max_tokens) is not int or max_tokens < 1:
        raise ConfigError(f"the verifier's max_tokens is a whole number from 1, not {brief(max_tokens)}")
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0.0 < timeout < math.inf:
        raise ConfigError(f"the verifier's timeout is a number of seconds over 0, not {brief(timeout)}")


class LLMAnomalyVerifier:
    """Asks a model about a window: Anthropic's, through an AsyncAnthropic client, or any `Model` of this package.

    The model sees intents alone, a line each, and of the hint and the policy the words that are understood. An answer
    that cannot be read is worth 0.5, suspicious, `verifier_parse_error`, with a warning. `timeout` is in seconds.

    Raises MissingExtraError, also an ImportError, where a client is given and Anthropic's SDK is not installed;
    ConfigError for what is neither a client nor a model, for a client that is not asynchronous, and for settings of a
    wrong type; `verify` for a hint or a policy that is no text.
    """

    def __init__(
        self,
        client: object,
        model: str = "claude-haiku-4-5-20251001",
        max_tokens: int = 256,
        *,
        timeout: float = TIMEOUT,
    ) -> None:
        _check_settings(model, max_tokens, timeout)
        self._model = client if _is_model(client) else None
        self._client = client if self._model is None and _is_client(client) else None
        self._name, self._max_tokens = model, max_tokens
        self._timeout = timeout

    async def verify(
        self, window: Sequence[NormalizedIntent], task_signal_hint: str = "", policy_name: str = ""
    ) -> AnomalyResult:
        """Return what the model makes of a window. Raises what the client raises, ModelError, or TimeoutError."""
        check_words(task_signal_hint=task_signal_hint, policy_name=policy_name)
        query = query_of(_own(window), task_signal_hint, policy_name)
        with anyio.fail_after(self._timeout):
            text = await self._asked(query)
        try:
            return read_result(text)
        except ValueError as error:
            _LOG.warning("the answer of the verifier %s cannot be read: %s", self._name, error)
            return PARSE_ERROR

    async def _asked(self, query: Query) -> str:
        if self._model is not None:
            reply = await self._model.ask(query)
            return reply.draws[0].text if reply.draws else ""
        if self._client is None:
            return ""
        message = await self._client.messages.create(
            model=self._name,
            max_tokens=self._max_tokens,
            system=query.system,
            messages=[{"role": "user", "content": query.prompt}],
        )
        return "".join([block.text for block in message.content if getattr(block, "type", "text") == "text"])
