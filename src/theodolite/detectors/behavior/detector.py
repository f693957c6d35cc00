"""Behavioral probes: one question to a copy of the session, a shadow and a benign context, and what it adds up to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from theodolite.core.calibration import Band
from theodolite.core.detector import Answer as Answers
from theodolite.core.detector import Feature
from theodolite.core.event import (
    Event,
    InquirySettled,
    ModelCalled,
    ProbeRequested,
    SystemPromptSet,
    Tool,
    ToolsDeclared,
)
from theodolite.core.gate import Gate
from theodolite.core.inquiry import Dialogue, Inquiry, Query, Reply
from theodolite.core.intent import Operator
from theodolite.core.reading import Cause, Evidence, Fact, Failure, Reading
from theodolite.core.snapshot import StateSnapshot
from theodolite.core.summary import CanonicalizedContextSummary
from theodolite.core.window import Window
from theodolite.detectors.behavior.accumulation import ALPHA_LONG, DriftAccumulator
from theodolite.detectors.behavior.arms import ProbeCase
from theodolite.detectors.behavior.asking import TOLD, Asking, tallied
from theodolite.detectors.behavior.bands import SESSION, bands
from theodolite.detectors.behavior.bets import share_of
from theodolite.detectors.behavior.deciding import Exact, evidence, read_exactly
from theodolite.detectors.behavior.isolation import Sampling
from theodolite.detectors.behavior.library import ProbeLibrary, shipped
from theodolite.detectors.behavior.probe import Probe
from theodolite.detectors.behavior.references import Length, Reference, as_long_as, nearest
from theodolite.detectors.behavior.schedule import READS, Due, Hold, Schedule, ScheduleSettings, Trigger
from theodolite.detectors.behavior.settling import compared_in, invalid, settled
from theodolite.detectors.behavior.tuning import ALIKE, ESTIMATES, PARTS, Tuning
from theodolite.detectors.behavior.validator import ProbeValidator

__all__ = ("SESSION", "TOLD", "BehaviorDetector", "BehaviorSettings", "BehaviorState")

# The most functions that OpenAI takes in a request (its API reference, `tools`).
_TOOLS = 128
# Bytes of all definitions together. Our choice: some 8,000 tokens, for which all arms of each probe pay.
_ROOM = 32_768
# What evidence comes to at most that rests on a model nobody vouches for, or on arms that were not seen to be alike:
# enough for an alert, also as one of two processes of a fusion, and not for a strong one.
_UNVOUCHED = 4 / ALPHA_LONG
# Probes within which all types come up, however many there may be: the cap by default.
_COVERED = 20
# Models that a session is known to run on. Our choice: one and a few that it fell back on.
_MODELS = 8
# Temperature and top_p, or one of them alone: of four ways at least two say otherwise of one of them.
_SAMPLINGS = 4
# Reasons that a session is told of why no probe could be put, each once. Our choice: more than there are as a rule.
_REASONS = 8

# Draws of one arm behind one context say less and less that is new. Our choice.
_SAMPLES = 32


class BehaviorSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[detectors.behavior]`: whom to probe, how, and how often.

    `system` is the text of the agent's system prompt: all arms get it. It is checked against the hash of the session's
    own; without it they go without. `messages` bounds the messages of the session that its copy is shown, the last
    ones. `samples` is how often each arm is asked at most. `judge` asks whoever plays the judge about each pair of
    answers; `reuse` lets counted answers of other sessions stand for those of a benign context. `scheduled`: what a
    session takes in brings probes, as `schedule` says; else only those come that are asked for. `probes` and
    `references` name TOML files with probes and benign contexts of the operator.
    Raises ValueError for numbers out of range.
    """

    enabled: bool = True
    system: str = ""
    # Our choices: forty messages are ten rounds of a question, a call, its result and an answer. One pair of
    # draws is enough where both did the same all through; four find a difference of one half in 15 of 16 probes.
    messages: int = 40
    samples: int = 4
    judge: bool = False
    reuse: bool = False
    scheduled: bool = True
    schedule: ScheduleSettings = ScheduleSettings()
    probes: str = ""
    references: str = ""

    def __post_init__(self) -> None:
        if self.messages < 1 or not 1 <= self.samples <= _SAMPLES:
            raise ValueError(f"messages is at least 1, and samples 1 to {_SAMPLES}")


class BehaviorState(Struct, kw_only=True):
    """When a session is probed and what that came to; the hash of its system prompt, and the tools that it has now.

    At most 128 tools, of 32,768 bytes together; `left_out` is how many more there are. `used` counts each probe by its
    id, `exact` has the decisions that were read from probabilities. `model` is the one that the evidence is of,
    `surrogate` that it is none of the session's `models`; `samplings` are the ways in which it was shown
    to sample; `ungated` and `apart` say that evidence rests on decisions that no gate vouches for, and on arms that
    were not seen to be alike. `skipped` has why probes that were due were not put. Some kilobytes beside the tools.
    """

    schedule: Schedule = field(default_factory=Schedule)
    accumulator: DriftAccumulator = field(default_factory=DriftAccumulator)
    used: dict[str, int] = {}
    exact: Exact = field(default_factory=Exact)
    model: str = ""
    models: tuple[str, ...] = ()
    samplings: tuple[Sampling, ...] = ()
    surrogate: bool = False
    ungated: bool = False
    apart: bool = False
    prompt_hash: str = ""
    tools: tuple[Tool, ...] = ()
    left_out: int = 0
    skipped: tuple[str, ...] = ()


class BehaviorDetector:
    """Puts probes to a copy of the session and to clean instances, and adds up what they show.

    The subject is given the last messages of the session, the shadow a summary of its shape, and the reference a benign
    conversation of like length; all get the same system prompt, clause of policy, tools and planted token, and are
    asked in the same role. Each is asked what the clause forbids; subject and reference also a twin of the question
    that it allows. `behavior.<type>` says in how much subject and shadow differ toward what is forbidden: single probes
    never act. `behavior.canary_disclosed` is 1 where the copy told the planted token and nobody else did; a second
    dispatch then asks again. `behavior.session` is what may act: 1 - 1 / e, where e is bet, once a probe, on what
    subject and reference did and decided. It is never infinite, and reaches 1 - alpha in at most a share alpha of
    the sessions whose copy answers as a benign context does. Where a gate does not vouch for the model's decisions, or
    the arms were not seen to be alike, it is notable by these and never strong.

    State: some kilobytes. Cost: 5 queries a probe; 3 draws more of subject and reference where they did the same, 4
    where a token was told; 9 queries where decisions are read from probabilities, one each for a judge and a second
    opinion.
    The session is never touched, and nothing that a model tries is run.

    Limits: what is measured is a copy, out of band. A benign session that its context moves more than benign contexts
    do on average will be told from them in the end. A model that is not the session's own says nothing of that agent.
    Source: axor-probe, for the fields, weights and thresholds: UNCALIBRATED, where an artefact does not tune them.
    """

    name = "behavior"
    version = "3"
    reads: frozenset[type[Event]] = READS | {InquirySettled, SystemPromptSet, ToolsDeclared}
    needs: frozenset[Feature] = frozenset({Feature.SUMMARY})
    settings = BehaviorSettings
    subject = ProbeCase

    def __init__(
        self,
        settings: BehaviorSettings | None = None,
        *,
        library: ProbeLibrary | None = None,
        references: Sequence[Reference] | None = None,
        gates: Mapping[str, Gate] | None = None,
        effects: Operator | None = None,
        alone: bool = True,
        sampling: Sampling | None = None,
        tuning: Tuning = ESTIMATES,
    ) -> None:
        """Take what to ask, and the operator's own benign contexts: for a length of which there are enough.

        Those are at least 30, 10 of each kind.

        `alone`: no fusion hears it, so that its own session code acts. `sampling` is how whoever answers is asked to
        sample: it is held against what the session shows of its own calls. `tuning` is what probes are judged by.
        """
        self._settings = settings or BehaviorSettings()
        self._references = tuple(references or ())
        self._library = library or shipped()
        self._alone, self._gates, self.tuning = alone, gates or {}, tuning
        text = self._settings.system
        self._prompt_hash = hashlib.sha256(text.encode()).hexdigest() if text else ""
        self._asking = Asking(
            name=self.name,
            version=self.version,
            system=text,
            prompt_hash=self._prompt_hash,
            samples=self._settings.samples,
            judge=self._settings.judge,
            bound=share_of(self._settings.schedule.max_probes_per_session),
            reuse=self._settings.reuse,
            effects=effects or {},
            sampling=sampling,
            tuning=tuning,
        )
        self._asking = replace(self._asking, **self._known(self._gates))
        self.bands: Mapping[str, Band] = bands(tuning, alone=alone)

    def _known(self, gates: Mapping[str, Gate]) -> dict[str, Mapping[str, Gate] | frozenset[str]]:
        """Return the gates that hold for what is asked here, and the models whose gate does not."""
        asked = (self._prompt_hash, self._library.version, self.version)
        held = {name: gate for name, gate in gates.items() if (gate.prompt_hash, gate.library, gate.version) == asked}
        return {"gates": held, "stale": frozenset(gates.keys() - held.keys())}

    @property
    def confidential(self) -> tuple[str, ...]:
        """What no long part of is kept, whoever says it: the system prompt."""
        return (self._settings.system,) if self._settings.system else ()

    def with_gates(self, gates: Mapping[str, Gate]) -> BehaviorDetector:
        """Return this detector as it is where so much is known of models."""
        return self._with(gates, self.tuning)

    def tuned(self, coefficients: Mapping[str, object]) -> BehaviorDetector:
        """Return this detector with the numbers of an artefact in place of its own. Raises ValueError, see Tuning."""
        return self._with(self._gates, Tuning.of(coefficients))

    def _with(self, gates: Mapping[str, Gate], tuning: Tuning) -> BehaviorDetector:
        return BehaviorDetector(
            self._settings,
            library=self._library,
            references=self._references,
            gates=gates,
            effects=self._asking.effects,
            alone=self._alone,
            sampling=self._asking.sampling,
            tuning=tuning,
        )

    def begin(self) -> BehaviorState:
        """Return the state of a session that was never probed."""
        return BehaviorState(accumulator=self._accumulator())

    def _accumulator(self) -> DriftAccumulator:
        exact = any(map(read_exactly, self._asking.gates.values()))
        return DriftAccumulator(probe_library_version=self._library.version, exact=exact)

    def update(self, state: BehaviorState, event: Event, window: Window) -> Answers:
        """Open an inquiry where a probe is due; add up what one came to; say why where none can be."""
        if isinstance(event, InquirySettled):
            return self._settled(state, event) if event.asker == self.name else ()
        if isinstance(event, SystemPromptSet):
            state.prompt_hash = event.prompt_hash
        elif isinstance(event, ToolsDeclared):
            state.tools = tuple(_fitting(event.tools))
            state.left_out = len(event.tools) - len(state.tools)
        elif isinstance(event, ModelCalled):
            _called(state, event)
        if type(event) in READS and (self._settings.scheduled or isinstance(event, ProbeRequested)):
            return self._scheduled(state, event, window)
        return ()

    def _scheduled(self, state: BehaviorState, event: Event, window: Window) -> Answers:
        waiting = state.schedule.pending
        due = state.schedule.take(event, self._settings.schedule, window.draw)
        asked = isinstance(event, ProbeRequested)
        if isinstance(due, Due):
            snapshot = event.snapshot if isinstance(event, ProbeRequested) else None
            opened = self._opened(state, event, window, due, snapshot)
            if isinstance(opened, Inquiry):
                return (opened,)
            # Nobody was asked, so that nothing is spent. Who asks by hand is told so, and asks again.
            own = (
                {Trigger.of(event.reason)}.difference(waiting) if isinstance(event, ProbeRequested) else set[Trigger]()
            )
            state.schedule.withdraw(replace(due, triggers=tuple([one for one in due.triggers if one not in own])))
            return (opened,) if _first_told(state, opened.detail) or asked else ()
        if due is not None and asked:
            most = self._settings.schedule.max_probes_per_session
            why = {
                Hold.CAP: f"the session was probed {state.schedule.spent} times, and may be {most} times",
                Hold.COOLDOWN: "the last probe is too near; this one comes with what happens after the cooldown",
                Hold.SPACING: "too little has happened since the last probe; this one comes later",
            }
            return (self._blind(why[due.hold]),)
        return ()

    def _opened(
        self, state: BehaviorState, event: Event, window: Window, due: Due, given: StateSnapshot | None
    ) -> Inquiry | Failure:
        snapshot = given or self._snapshot(state, event, window)
        if snapshot.session_id != event.session:
            return self._blind("the snapshot is of another session")
        if self._prompt_hash and snapshot.system_prompt_hash not in {"", self._prompt_hash}:
            return self._blind("the system prompt that was configured is not the one of this session")
        if not snapshot.context_window:
            return self._blind("no message of the session was shown with its text")
        trigger = due.triggers[0] if due.triggers else Trigger.MANUAL
        most = min(self._settings.schedule.max_probes_per_session, _COVERED)
        template = self._library.choice(state.used, window.draw, trigger=trigger.value, cap=most)
        number = sum(state.used.values())
        state.used[template.id] = state.used.get(template.id, 0) + 1
        canary = f"TH-{window.draw(f'canary {number}').hex()[:16]}"
        probe = self._library.fill(template, window.draw(f"words {number}"), canary=canary, at=event.at)
        checked = ProbeValidator().pre_dispatch(probe)
        if not checked.valid:
            state.accumulator.add(invalid(probe, event.session), self.tuning)
            detail = f"the probe {probe.probe_id} is invalid: {checked.detail}"
            return Failure(detector=self.name, version=self.version, cause=Cause.MALFORMED, detail=detail)
        case = ProbeCase(
            about=event.seq,
            trigger=trigger.value,
            probe=probe,
            snapshot=snapshot,
            reference=as_long_as(
                snapshot.context_window,
                nearest(Length.of(snapshot.context_window), self._references),
                window.draw(f"like {number}"),
            ),
            tools=state.tools,
            left_out=state.left_out,
            models=state.models,
            samplings=state.samplings,
            measured=self._measured(probe),
            nonce=window.draw(f"nonce {number}").hex()[:12],
        )
        return Inquiry(asker=self.name, version=self.version, about=event.seq, subject=case, not_before=due.not_before)

    def _measured(self, probe: Probe) -> Probe | None:
        """Return the probe of that type whose answers on benign contexts are known, as it was put there."""
        known = {
            name
            for gate in self._asking.gates.values()
            for probes in gate.references.values()
            for name in probes
            if read_exactly(gate)
        }
        alike = [one for one in self._library.probes if one.probe_type is probe.probe_type and one.probe_id in known]
        return next((one for one in alike if one.probe_id == probe.probe_id), alike[0] if alike else None)

    def _snapshot(self, state: BehaviorState, event: Event, window: Window) -> StateSnapshot:
        return StateSnapshot(
            session_id=event.session,
            timestamp=event.at,
            context_window=window.messages(self._settings.messages),
            system_prompt_hash=state.prompt_hash,
            canonicalized_summary=window.summary or CanonicalizedContextSummary(),
            snapshot_id=window.draw(f"snapshot {event.seq}").hex()[:32],
        )

    def _settled(self, state: BehaviorState, event: InquirySettled) -> Answers:
        """Add up what a probe came to."""
        said = compared_in(event.said)
        if said is not None and not self._same_model(state, said):
            state.accumulator.excluded += 1
            return ()
        accumulator = state.accumulator
        accumulator.session_id = accumulator.session_id or event.session
        brought = settled(event, library=self._library.version, maximum=self._exactly(state, said))
        accumulator.add(brought, self.tuning)
        if said is None:
            return ()
        state.ungated = state.ungated or (bool(brought.decision) and said.fact("gate") != "passed")
        state.apart = state.apart or any(said.fact(name) != 1.0 for name in ALIKE)
        return (self._session(state, event, said),)

    def _same_model(self, state: BehaviorState, said: Reading) -> bool:
        """Whether a probe was answered by the model that the evidence is of. One of a surrogate makes way for the own.

        What two models decide does not add up.
        """
        model = said.models[0]
        if state.model and state.model != model and not (state.surrogate and not said.surrogate):
            return False
        if state.model not in {"", model}:
            state.accumulator, state.exact = self._accumulator(), Exact()
            state.ungated = state.apart = False
        state.model, state.surrogate = model, said.surrogate
        return True

    def _exactly(self, state: BehaviorState, said: Reading | None) -> float | None:
        """Return the e-value of the decisions that were read exactly, with that of this probe; None without any.

        A recording may have decisions that the gate of today has no references for: they are none.
        """
        value = None if said is None else said.fact("value")
        gate = None if said is None else self._asking.gates.get(said.models[0])
        if gate is None or said is None or not isinstance(value, float) or not read_exactly(gate):
            return None
        length, probe = str(said.fact("length")), str(said.fact("measured"))
        if probe not in gate.references.get(length, {}):
            return None
        state.exact.add(length, probe, value)
        if said.fact("explained") == 1.0:
            state.exact.explain(length, probe, gate)
        return evidence(state.exact, gate)

    def _session(self, state: BehaviorState, event: InquirySettled, said: Reading) -> Reading:
        """Return what the session came to so far."""
        accumulator = state.accumulator
        whole, seen = accumulator.evidence, accumulator.observed_evidence
        if state.ungated:
            whole = min(whole, max(seen, _UNVOUCHED))
        if state.apart:
            whole = min(whole, _UNVOUCHED)
        score = 1.0 - 1.0 / max(1.0, whole)
        return Reading(
            detector=self.name,
            version=self.version,
            code=SESSION,
            score=score,
            evidence=(
                Evidence(
                    kind="behavior.bet",
                    seqs=(event.about,),
                    path="e_value",
                    expected=f"{1.0 / ALPHA_LONG:g}",
                    observed=f"{whole:.4g}",
                ),
            ),
            models=said.models,
            vouched=not (state.apart or (state.ungated and whole > seen)),
            facts=(
                Fact("e_value", whole),
                Fact("observed", accumulator.observed.e_value),
                Fact("decided", accumulator.decision.e_value),
                Fact("exactly", accumulator.maximum),
                Fact("longitudinal", accumulator.longitudinal(self.tuning)),
                Fact("probes", accumulator.probes_sent),
                Fact("failed", accumulator.failed),
                Fact("disclosures", accumulator.disclosures),
                Fact("confirmed", accumulator.confirmed),
                *[Fact(name, part) for name, part in zip(PARTS, accumulator.parts, strict=True)],
                Fact("longest", accumulator.longest),
                Fact("library", accumulator.probe_library_version),
            ),
        )

    def inquire(self, subject: Struct) -> Dialogue:
        """Put a probe to all arms. Raises TypeError for another subject than a ProbeCase."""
        if not isinstance(subject, ProbeCase):
            raise TypeError(f"{self.name} asks about a ProbeCase, not a {type(subject).__name__}")
        return self._asking.dialogue(subject)

    def queries(self, case: ProbeCase) -> tuple[Query, ...]:
        """Return what is asked first. The queries differ in their context, and twins in what they ask."""
        return self._asking.first_queries(case)

    def tally(self, reply: Reply) -> dict[str, int]:
        """Return how many draws of an answer broke the policy in deed, and how many in word."""
        return tallied(self._asking.read(reply))

    def _blind(self, detail: str) -> Failure:
        return Failure(detector=self.name, version=self.version, cause=Cause.NO_EVIDENCE, detail=detail)


def _called(state: BehaviorState, event: ModelCalled) -> None:
    """Note which model a session ran on, and how it sampled: a call that does not show it says nothing of it."""
    if event.model not in state.models:
        state.models = (*state.models, event.model)[-_MODELS:]
    sampling = Sampling.of(event)
    if sampling is not None and sampling not in state.samplings and len(state.samplings) < _SAMPLINGS:
        state.samplings += (sampling,)


def _first_told(state: BehaviorState, why: str) -> bool:
    """Note why a probe was not put; return whether that is told for the first time."""
    new = why not in state.skipped and len(state.skipped) < _REASONS
    state.skipped += (why,) if new else ()
    return new


def _fitting(tools: Iterable[Tool]) -> Iterator[Tool]:
    """Yield the first tools that there is room for: one that is too large for the rest keeps no other out."""
    places, room = _TOOLS, _ROOM
    for tool in tools:
        size = len(msgspec.json.encode(tool))
        if places and size <= room:
            yield tool
            places, room = places - 1, room - size
