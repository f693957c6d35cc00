"""The parts of a pipeline under axor-probe's names: whoever answers for each arm, and what the caller brings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol

from msgspec.structs import replace

from theodolite.api.probing.audit import ProbeAuditStore
from theodolite.api.probing.controller import RuntimeEvent
from theodolite.api.probing.given import able, called, listed, listed_of, of_kind, sound, word, worded
from theodolite.api.probing.inference import NAME, FunctionModel, InferenceFn
from theodolite.api.probing.signals import DriftAction, ProbeReport
from theodolite.core.budget import Budget
from theodolite.core.calibration import Calibration
from theodolite.core.errors import ConfigError
from theodolite.core.gate import FEWEST_REFERENCES
from theodolite.core.inquiry import Message
from theodolite.core.snapshot import StateSnapshot
from theodolite.core.text import brief, printable
from theodolite.detectors.behavior.accumulation import DriftAccumulator
from theodolite.detectors.behavior.detector import BehaviorSettings
from theodolite.detectors.behavior.library import ProbeLibrary, shipped
from theodolite.detectors.behavior.references import Length, Reference, faults, lacking, one_sided

__all__ = (
    "ContextlessShadowBaseline",
    "DefaultComparator",
    "DefaultShadowInstanceFactory",
    "IntegrationLayer",
    "ProbeExecutor",
    "ProbeScheduler",
    "SemanticJudge",
    "ShadowInstance",
    "SnapshotFactory",
    "check",
    "check_accumulator",
    "layers_of",
    "references_of",
)


class ProbeScheduler(Protocol):
    """Says whether a probe is due."""

    def evaluate(self, event: RuntimeEvent) -> bool | Awaitable[bool]:
        """Return whether to probe now."""
        ...


class SnapshotFactory(Protocol):
    """Takes the snapshot of a live session."""

    def create(self, event: RuntimeEvent) -> StateSnapshot | Awaitable[StateSnapshot]:
        """Return a copy of the session as it is. What it holds is copied again; nothing here changes it."""
        ...


class IntegrationLayer(Protocol):
    """Hears of significant reports."""

    def emit(self, report: ProbeReport, action: DriftAction) -> Awaitable[None] | None:
        """Take a report. What it raises is counted, and stops nothing."""
        ...


class ProbeExecutor:
    """Answers for the session's copy. `context_sanitizer` is given the text of each message, and gives what is shown.

    It is for a model that may not see what the session saw. `model` is what the host calls the model behind the
    function: it is held against the `model` of a RuntimeEvent. Without it nobody knows which model answers, and it is
    taken to be the session's. Raises ConfigError for what cannot be called, and for a model without a name.
    """

    def __init__(
        self,
        inference_fn: InferenceFn,
        context_sanitizer: Callable[[str], str] | None = None,
        *,
        model: str = NAME,
    ) -> None:
        self.inference_fn = inference_fn
        self.model = FunctionModel(inference_fn, name=word("model", model))
        self.named = model != NAME
        if context_sanitizer is not None:
            called("context_sanitizer", context_sanitizer)
        self._sanitizer = context_sanitizer

    def sanitized(self, snapshot: StateSnapshot) -> StateSnapshot:
        """Return what the copy may be shown of a snapshot. Raises what the sanitizer raises, EventError for no text."""
        clean = self._sanitizer
        if clean is None:
            return snapshot
        shown = tuple([Message(message.role, clean(message.text)) for message in snapshot.context_window])
        return replace(snapshot, context_window=shown)


class ShadowInstance:
    """Answers for the shadow, which is told a summary alone. Every arm gets the same system prompt: this one.

    With the function of the executor and no `model` of its own it goes by the executor's name. Raises ConfigError for
    what cannot be called, and for a prompt or a model that is no text. A lone surrogate of the prompt is spelled out.
    """

    def __init__(self, inference_fn: InferenceFn, system_prompt: str = "", *, model: str = NAME) -> None:
        self.inference_fn = inference_fn
        self.model = FunctionModel(inference_fn, name=word("model", model))
        self.named = model != NAME
        self.system_prompt = printable(of_kind("system_prompt", system_prompt, str))


class ContextlessShadowBaseline(ShadowInstance):
    """Answers without any context, where two answers are ambiguous."""


class SemanticJudge:
    """Gives an opinion of two answers. It may add to their difference, and takes nothing away."""

    def __init__(self, inference_fn: InferenceFn) -> None:
        self.inference_fn = inference_fn
        self.model = FunctionModel(inference_fn)


class DefaultShadowInstanceFactory:
    """The two clean instances. Raises ConfigError where they have different system prompts, or are something else."""

    def __init__(self, shadow: ShadowInstance, baseline: ContextlessShadowBaseline | None = None) -> None:
        self.shadow = of_kind("shadow", shadow, ShadowInstance)
        self.baseline = None if baseline is None else of_kind("baseline", baseline, ContextlessShadowBaseline)
        if baseline is not None and baseline.system_prompt != shadow.system_prompt:
            raise ConfigError("shadow and baseline have different system prompts: arms that are compared have the same")


class DefaultComparator:
    """Compares field by field, with a judge or without. Raises ConfigError for a judge that is none."""

    def __init__(self, judge: SemanticJudge | None = None) -> None:
        self.judge = None if judge is None else of_kind("judge", judge, SemanticJudge)


# What each part is, or what is asked of one that the caller made.
_KINDS: Mapping[str, type] = {
    "executor": ProbeExecutor,
    "shadow_factory": DefaultShadowInstanceFactory,
    "comparator": DefaultComparator,
    "accumulator": DriftAccumulator,
    "audit_store": ProbeAuditStore,
    "library": ProbeLibrary,
    "calibration": Calibration,
    "budget": Budget,
    "settings": BehaviorSettings,
}
_ASKED: Mapping[str, tuple[str, ...]] = {
    "scheduler": ("evaluate",),
    "snapshot_factory": ("create",),
    "redactor": ("text", "field"),
}
# What records carry of a part.
_NAMED: Mapping[str, tuple[str, ...]] = {"redactor": ("name", "version")}
_NEEDED = frozenset({"scheduler", "snapshot_factory", "executor", "shadow_factory"})


def check(**parts: object) -> None:
    """Raise ConfigError for a part that is something else. One that is left out may be None."""
    for name, part in parts.items():
        if part is None and name not in _NEEDED:
            continue
        if name in _KINDS:
            of_kind(name, part, _KINDS[name])
        else:
            able(name, part, *_ASKED[name])
            worded(name, part, *_NAMED.get(name, ()))


def layers_of(integrations: Iterable[IntegrationLayer]) -> tuple[IntegrationLayer, ...]:
    """Return the integrations. Raises ConfigError for one that cannot be told of a report."""
    layers = listed("integrations", integrations)
    for layer in layers:
        able("integrations", layer, "emit")
    return layers


def check_accumulator(accumulator: DriftAccumulator | None, library: ProbeLibrary | None) -> None:
    """Raise ConfigError for an accumulator that nothing can be added to or told of, or that no probe would count in.

    An accumulator takes the probes of its own version of the library alone.
    """
    if accumulator is None:
        return
    sound("accumulator", accumulator)
    for name in accumulator.__struct_fields__:
        count: object = getattr(accumulator, name)
        if isinstance(count, int | float) and count < 0:
            raise ConfigError(f"{name} of the accumulator is a number from 0, not {count}")
    try:
        accumulator.report()
    except (ArithmeticError, ValueError) as error:
        raise ConfigError(f"the accumulator has counts that contradict each other: {error}") from None
    version = (library or shipped()).version
    if accumulator.probe_library_version != version:
        raise ConfigError(
            f"the accumulator is for version {brief(accumulator.probe_library_version)} of the probe library, and "
            f"version {version} is asked here, of which it would count nothing: give it that version"
        )


def references_of(references: Iterable[Reference]) -> tuple[Reference, ...]:
    """Return the operator's benign conversations. Raises ConfigError for those that none would be held against.

    That are fewer than 30 of every length, or 30 of one of which fewer than 10 are of a kind: shipped ones would stand
    in for them, and no report would say so. It also is one with words that lead an answer, or that is there twice.
    """
    own = listed_of("references", references, Reference)
    said = Counter([one.said for one in own])
    for one in own:
        if said[one.said] > 1:
            raise ConfigError(f"references: {brief(one.id)} says the same as another one: give each once")
        if found := faults(one.said):
            raise ConfigError(f"references: {brief(one.id)} has {', '.join(found)}, which would lead an answer")
    lengths = Counter([Length.of(one.said) for one in own])
    if own and max(lengths.values()) < FEWEST_REFERENCES:
        raise ConfigError(f"references: {lacking(lengths.most_common(1)[0][0], own)}")
    if why := one_sided(own):
        raise ConfigError(f"references: {why}")
    return own
