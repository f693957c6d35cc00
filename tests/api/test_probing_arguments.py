"""What callers without types give by mistake: each is told at once what was wrong, where, and what to give instead."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import anyio
import msgspec
import pytest

from theodolite.api.probing import (
    ContextlessShadowBaseline,
    DefaultComparator,
    DefaultShadowInstanceFactory,
    DriftAccumulator,
    FunctionModel,
    PayloadRedactor,
    ProbeAuditStore,
    ProbeController,
    ProbeExecutor,
    ProbeLibrary,
    ProbeOutcome,
    ProbePipeline,
    ProbeReport,
    ProbeScheduleConfig,
    ProbeType,
    RuntimeEvent,
    SemanticJudge,
    SentinelIntegration,
    ShadowInstance,
    StateSnapshot,
    audit_payload,
    emit_to_sentinel,
    feed_audit,
    health_payload,
    notify_core,
    report_payload,
)
from theodolite.api.probing.reputation import ReputationPoll
from theodolite.core.budget import Budget, Limit
from theodolite.core.errors import ConfigError, EventError
from theodolite.core.inquiry import Message
from theodolite.core.redaction import Profile
from theodolite.detectors.behavior.accumulation import TypeCount
from theodolite.detectors.behavior.references import Kind, Reference
from theodolite.redactors.rules import Pseudonyms

Made = Callable[..., object]
HASH = "ab" * 32
EVENT = RuntimeEvent(session_id="s-1", event_type="manual")


async def declines(_: object) -> object:
    await anyio.lowlevel.checkpoint()
    return "I cannot do that."


async def goes_on(_: object = None) -> None:
    await anyio.lowlevel.checkpoint()


class Always:
    def evaluate(self, event: RuntimeEvent) -> bool:
        del event
        return True


class Copies:
    def create(self, event: RuntimeEvent) -> StateSnapshot:
        return StateSnapshot(session_id=event.session_id, context_window=(Message("user", "Hello"),))


class Bare:
    """A part that has nothing that is asked of it."""


class Sink:
    """What hears of everything."""

    def on_drift(self, session_id: str, agent_id: str, action: str) -> None:
        del session_id, agent_id, action

    def mark_session_tainted(self, session_id: str, agent_id: str) -> None:
        del session_id, agent_id


class Aware:
    """A part whose methods are none."""

    evaluate = create = emit = on_drift = mark_session_tainted = None


class Unnamed:
    """A redactor that is called something, or nothing."""

    version = "1"

    def __init__(self, name: object) -> None:
        self.name = name

    def text(self, value: str) -> str:
        return value

    def field(self, name: str, value: str) -> str:
        del name
        return value


class Fails:
    """A part of which nothing can be looked at."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(f"hunter2 of {name}")


def accumulated(**fields: object) -> DriftAccumulator:
    """Return an accumulator with some fields that are given as they are."""
    made = DriftAccumulator(session_id="s-1")
    for name, value in fields.items():
        msgspec.structs.force_setattr(made, name, value)
    return made


def own(kinds: Sequence[Kind], said: str = "Lamp number {} is here.") -> list[Reference]:
    """Return benign conversations of the operator, one of each kind that is given."""
    return [
        Reference(id=f"own-{n}", kind=kind, topic="lamps", said=(Message("user", said.format(n)),))
        for n, kind in enumerate(kinds)
    ]


UNSOUND: tuple[object, ...] = (
    accumulated(scored="x"),
    accumulated(observed=None),
    accumulated(decision=Bare()),
    accumulated(categories={1: 2}),
    accumulated(by_type=[]),
    accumulated(maximum=math.nan),
    accumulated(total=math.inf),
    accumulated(failed=-1),
    accumulated(by_type={next(iter(ProbeType)): TypeCount(k=2, n=1)}),
)
NO_NAME: tuple[object, ...] = (None, "", 5, "a\ud800")
BOTH = [*[Kind.PLAIN] * 20, *[Kind.HARD] * 10]
LACKING: tuple[object, ...] = (
    own([Kind.PLAIN] * 3),
    own([Kind.PLAIN] * 30),
    own([*[Kind.PLAIN] * 21, *[Kind.HARD] * 9]),
    own(BOTH, "The same each time."),
    own(BOTH, "Just say B, number {}."),
)
NAMELESS = msgspec.convert({}, DriftAccumulator)
msgspec.structs.force_setattr(NAMELESS, "session_id", 5)
STRANGE = DriftAccumulator(session_id="s-1", probe_library_version="2.0.0")
NO_COUNT: tuple[object, ...] = (True, 0, -1, 1.5, "9", None, math.nan)
NO_SECONDS: tuple[object, ...] = (-1, -0.5, math.nan, math.inf, True, "30", None)
SHADOW = ShadowInstance(declines, "You help.")
BASELINE = ContextlessShadowBaseline(declines, "You help.")
PARTS: Mapping[str, object] = {
    "scheduler": Always(),
    "snapshot_factory": Copies(),
    "executor": ProbeExecutor(declines),
    "shadow_factory": DefaultShadowInstanceFactory(SHADOW, BASELINE),
}
SNAPSHOT: Mapping[str, object] = {"session_id": "s-1"}
ASKED: Mapping[str, object] = {"inference_fn": declines}
POLLED: Mapping[str, object] = {"path": Path("r"), "trigger": goes_on}
NOTHING: Mapping[str, object] = {}
TAKEN_IN: frozenset[Made] = frozenset({StateSnapshot, Message})

# What is made, of what else, the argument that is wrong, and what it may not be. The error names the argument.
ROWS: list[tuple[Made, Mapping[str, object], str, tuple[object, ...]]] = [
    (ProbePipeline, PARTS, "scheduler", (None, Bare(), Aware(), Always, 5)),
    (ProbePipeline, PARTS, "snapshot_factory", (None, Aware(), Copies)),
    (ProbePipeline, PARTS, "executor", (None, declines, "gpt", ProbeExecutor)),
    (ProbePipeline, PARTS, "shadow_factory", (None, SHADOW, Bare())),
    (ProbePipeline, PARTS, "comparator", (Bare(), False, DefaultComparator)),
    (ProbePipeline, PARTS, "accumulator", ({}, Bare(), DriftAccumulator, NAMELESS, STRANGE, *UNSOUND)),
    (ProbePipeline, PARTS, "redactor", (Bare(), PayloadRedactor, "rules", *[Unnamed(name) for name in NO_NAME])),
    (ProbePipeline, PARTS, "redactor", (Fails(),)),
    (ProbePipeline, PARTS, "scheduler", (Fails(),)),
    (ProbePipeline, PARTS, "audit_store", ([], Bare(), ProbeAuditStore)),
    (ProbePipeline, PARTS, "library", ("x", "1.0.0", ProbeLibrary, {})),
    (ProbePipeline, PARTS, "references", (None, 5, "own.toml", [5], {"a": 1}, *LACKING)),
    (ProbePipeline, PARTS, "integrations", (None, 5, [Bare()], [Aware()], "ab")),
    (ProbePipeline, PARTS, "calibration", ("CALIBRATED", {}, True)),
    (ProbePipeline, PARTS, "budget", ({}, 5, Limit(calls=5), Budget)),
    (ProbePipeline, PARTS, "settings", ({}, "x", 0)),
    (ProbePipeline, PARTS, "timeout", (math.nan, math.inf, -1, 0, "x", None, True, 10**400, [1])),
    (ProbePipeline, PARTS, "secret", (b"short", "x" * 40, 5)),
    (FunctionModel, NOTHING, "inference_fn", (None, 5, "m")),
    (ProbeExecutor, NOTHING, "inference_fn", (None, 5, "m")),
    (ShadowInstance, NOTHING, "inference_fn", (None, 5, "m")),
    (SemanticJudge, NOTHING, "inference_fn", (None, 5, "m")),
    (FunctionModel, ASKED, "name", (None, 5, "", "a\ud800")),
    (ProbeExecutor, ASKED, "model", (None, 5, "", b"m", [], "a\ud800")),
    (ProbeExecutor, ASKED, "context_sanitizer", ("x", 5, True)),
    (ShadowInstance, ASKED, "model", (None, 5, "", "\udfff")),
    (ShadowInstance, ASKED, "system_prompt", (None, 5, b"You help.")),
    (ContextlessShadowBaseline, ASKED, "system_prompt", (None, 5, b"You help.")),
    (DefaultShadowInstanceFactory, NOTHING, "shadow", (None, declines, ShadowInstance)),
    (DefaultShadowInstanceFactory, {"shadow": SHADOW}, "baseline", (declines, 5, SHADOW)),
    (DefaultComparator, NOTHING, "judge", (declines, 5, SemanticJudge)),
    (ProbeController, NOTHING, "config", (3, {}, ProbeScheduleConfig)),
    (ProbeController, NOTHING, "dispatch_fn", (3, "x", False)),
    (ProbeController, NOTHING, "secret", (b"short", "x" * 40, 5)),
    (ProbeController, NOTHING, "clock", (None, 5, "now")),
    (ProbeController, NOTHING, "sleep", (None, 5)),
    (ProbeController, NOTHING, "max_sessions", (True, 0, 1.5, "9", None)),
    (ProbeScheduleConfig, NOTHING, "max_probes_per_session", NO_COUNT),
    (ProbeScheduleConfig, NOTHING, "context_growth_tokens", NO_COUNT),
    (ProbeScheduleConfig, NOTHING, "external_content_threshold", NO_COUNT),
    (ProbeScheduleConfig, NOTHING, "cooldown_window_seconds", NO_SECONDS),
    (ProbeScheduleConfig, NOTHING, "jitter_seconds", NO_SECONDS),
    (ReputationPoll, POLLED, "trigger", (None, 5)),
    (ReputationPoll, POLLED, "sleep", (None, 5)),
    (ReputationPoll, POLLED, "random", (None, 5)),
    (ReputationPoll, POLLED, "interval", (None, -1, math.nan, "60")),
    (ProbeAuditStore, NOTHING, "key", ("text", 5, "", b"", b"x", b"k" * 31)),
    (ProbeAuditStore, {"store": ProbeAuditStore()}, "key", (b"k" * 32,)),
    (ProbeAuditStore, NOTHING, "store", (5, Bare(), ProbeAuditStore, Fails())),
    (PayloadRedactor, NOTHING, "vocabulary", (None, 5, ["a"], {"a": 5}, {"a": "b"}, {"a": [5]}, {5: ["a"]})),
    (PayloadRedactor, NOTHING, "profile", (None, 5, "lax", [], Profile)),
    (PayloadRedactor, NOTHING, "free_text", (None, 5, "reasoning", [5], {"reasoning": 1})),
    (PayloadRedactor, NOTHING, "pseudonyms", (5, b"k" * 32, False, Pseudonyms)),
    (SentinelIntegration, NOTHING, "sink", (None, Aware(), 5)),
    (StateSnapshot, NOTHING, "session_id", (5, None, b"s", [])),
    (StateSnapshot, SNAPSHOT, "snapshot_id", (5, None)),
    (StateSnapshot, SNAPSHOT, "timestamp", (math.nan, math.inf, "now", None, True, 10**400, [])),
    (StateSnapshot, SNAPSHOT, "system_prompt_hash", (5, None, b"ab" * 32)),
    (StateSnapshot, SNAPSHOT, "context_window", ("Hello", None, 5, {"role": "user", "content": "Hi"})),
    (StateSnapshot, SNAPSHOT, "context_window", ([5], ["Hello"], [None], [{}], [("user",)], [("user", 5)])),
    (StateSnapshot, SNAPSHOT, "context_window", ([{"role": 5, "content": "Hi"}], [{"content": "Hi"}], [("", "Hi")])),
    (
        StateSnapshot,
        SNAPSHOT,
        "canonicalized_summary",
        (None, "low", {"data_sensitivity": "huge"}, 5, {"a": 1}, {5: 1}),
    ),
    (Message, {"text": "Hi"}, "role", (None, 5, "", b"user")),
    (Message, {"role": "user"}, "text", (None, 5, b"Hi", ["Hi"])),
]
make_pipeline: Callable[..., ProbePipeline] = ProbePipeline  # with what its types do not allow
make_redactor: Callable[..., PayloadRedactor] = PayloadRedactor
CASES = [(made, {**rest, named: value}, named) for made, rest, named, values in ROWS for value in values]


@pytest.mark.parametrize(
    ("made", "given", "named"), CASES, ids=[f"{i}-{case[0].__name__}-{case[2]}" for i, case in enumerate(CASES)]
)
def test_what_is_made_of_something_else_is_refused_by_name(made: Made, given: Mapping[str, object], named: str) -> None:
    expected = EventError if made in TAKEN_IN else ConfigError
    with pytest.raises(expected, match=named) as refused:
        made(**given)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("given", ["The code is 4711.", "ab", "x" * 64, f"{HASH}\n"])
def test_of_the_prompt_in_the_place_of_its_hash_only_the_hash_is_kept(given: str) -> None:
    kept = StateSnapshot(session_id="s-1", system_prompt_hash=given).system_prompt_hash
    assert kept == hashlib.sha256(given.encode()).hexdigest()


def test_a_hash_may_be_of_capitals() -> None:
    assert StateSnapshot(session_id="s-1", system_prompt_hash=HASH.upper()).system_prompt_hash == HASH


@pytest.mark.parametrize(
    ("made", "given"),
    [
        (ProbePipeline, PARTS),
        (ProbePipeline, {**PARTS, "references": own(BOTH)}),
        (ProbePipeline, {**PARTS, "redactor": Unnamed("own")}),
        (ProbePipeline, {**PARTS, "accumulator": accumulated(scored=2, failures=1)}),
        (ShadowInstance, {**ASKED, "system_prompt": ""}),
        (StateSnapshot, SNAPSHOT),
        (ProbeExecutor, ASKED),
        (ProbeAuditStore, {"key": b"k" * 32}),
        (PayloadRedactor, {"profile": "categorical", "vocabulary": {"a": ["b"]}, "free_text": ("c",)}),
    ],
    ids=lambda given: "with" if isinstance(given, Mapping) else given.__name__,
)
def test_what_is_right_is_taken(made: Made, given: Mapping[str, object]) -> None:
    assert made(**given)


def test_a_lone_surrogate_of_a_prompt_is_spelled_out() -> None:
    shadow = ShadowInstance(declines, "You help \ud800.")
    assert shadow.system_prompt == r"You help \ud800."
    report = anyio.run(make_pipeline(**{**PARTS, "shadow_factory": DefaultShadowInstanceFactory(shadow)}).run, EVENT)
    assert report is not None
    assert report.outcome is ProbeOutcome.CLEAN


def test_a_redactor_with_another_profile_is_one_of_that_profile() -> None:
    assert make_redactor(profile="categorical").redact({"reasoning": "Ask Bob."}) == {"reasoning": "[REDACTED:TEXT]"}


# Methods.


def pipeline() -> ProbePipeline:
    return make_pipeline(**PARTS)


def _reported() -> ProbeReport:
    report = anyio.run(pipeline().run, EVENT)
    assert report is not None
    return report


REPORT = _reported()
SIGNAL = REPORT.signal


run: Callable[..., Awaitable[object]] = pipeline().run
wait: Callable[..., Awaitable[object]] = ProbeController().wait
poll: Callable[..., Awaitable[object]] = ProbeController().run_reputation_poll


def _awaited(call: Callable[..., Awaitable[object]]) -> Made:
    def called(given: object) -> object:
        return anyio.run(call, given)

    return called


NO_TEXT: tuple[object, ...] = (None, 5, [], b"s-1")
NO_EVENT: tuple[object, ...] = (None, {}, "s-1", 5, RuntimeEvent)
NO_SIGNAL: tuple[object, ...] = (None, 5, {}, EVENT)


def _about(tell: Made, whom: object) -> Made:
    def call(about: object) -> object:
        return tell(about, whom)

    return call


def _whom(tell: Made, about: object) -> Made:
    def call(whom: object) -> object:
        return tell(about, whom)

    return call


make_library: Callable[..., ProbeLibrary] = ProbeLibrary
extended: Callable[..., ProbeLibrary] = ProbeLibrary().extended


def _extended(text: object) -> object:
    return extended(text, "mine.toml")


def _of_templates(templates: object) -> object:
    return make_library(templates=templates)


def _of_version(version: object) -> object:
    return make_library(version=version)


CALLS: list[tuple[str, Made, tuple[object, ...], type[Exception]]] = [
    ("run", _awaited(run), NO_EVENT, EventError),
    ("wait", _awaited(wait), NO_EVENT, EventError),
    ("evaluate", ProbeController().evaluate, NO_EVENT, EventError),
    ("session_id", _awaited(poll), NO_TEXT, ConfigError),
    ("session_id", pipeline().forget, NO_TEXT, ConfigError),
    ("session_id", ProbeController().sent, NO_TEXT, ConfigError),
    ("session_id", ProbeController().forget, NO_TEXT, ConfigError),
    ("session_id", ProbeAuditStore().signals_for_session, NO_TEXT, ConfigError),
    ("session_id", ProbeAuditStore().forget, NO_TEXT, ConfigError),
    ("payload", PayloadRedactor().redact, (None, 5, "text", [1], {5: "a"}), ConfigError),
    ("signal", _about(notify_core, Sink()), NO_SIGNAL, ConfigError),
    ("signal", _about(emit_to_sentinel, Sink()), NO_SIGNAL, ConfigError),
    ("sink", _whom(notify_core, SIGNAL), (None, 5, Aware()), ConfigError),
    ("sink", _whom(emit_to_sentinel, SIGNAL), (None, 5, Aware()), ConfigError),
    ("report", _about(feed_audit, print), NO_SIGNAL, ConfigError),
    ("feed_fn", _whom(feed_audit, REPORT), (None, 5, "x"), ConfigError),
    ("report", health_payload, NO_SIGNAL, ConfigError),
    ("report", report_payload, NO_SIGNAL, ConfigError),
    ("facts", DriftAccumulator().add, (None, 5, REPORT, SIGNAL, {}), ConfigError),
    ("documents", ProbeLibrary.of, (None, 5, "probes.toml", [("a", "")]), ConfigError),
    ("mine.toml", _extended, (None, 5, b"[[probes]]", Path("mine.toml")), ConfigError),
    ("templates", _of_templates, (5, "dd_01", [5], [REPORT]), ConfigError),
    ("version", _of_version, (None, 5, "", b"1"), ConfigError),
    ("health", audit_payload, (None, 5, "x", [], {}, {"session_id": "s-1"}), ConfigError),
]


@pytest.mark.parametrize(
    ("named", "call", "given", "expected"),
    [(named, call, value, expected) for named, call, values, expected in CALLS for value in values],
)
def test_what_is_called_with_something_else_says_so(
    named: str, call: Made, given: object, expected: type[Exception]
) -> None:
    with pytest.raises(expected, match=named):
        call(given)
