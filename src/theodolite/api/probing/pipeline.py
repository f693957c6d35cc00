"""axor-probe's pipeline: a scheduler, a snapshot factory and inference functions, over one Monitor of ours."""

from __future__ import annotations

import logging
import math
from collections import OrderedDict, deque
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import partial
from uuid import uuid4

import anyio
from msgspec import structs
from msgspec.structs import replace

from theodolite.api.probing.audit import PayloadRedactor, ProbeAuditStore
from theodolite.api.probing.controller import ProbeController, RuntimeEvent
from theodolite.api.probing.foreign import within
from theodolite.api.probing.given import of_kind, seconds, secret_bytes
from theodolite.api.probing.inference import FunctionModel
from theodolite.api.probing.parts import (
    DefaultComparator,
    DefaultShadowInstanceFactory,
    IntegrationLayer,
    ProbeExecutor,
    ProbeScheduler,
    SemanticJudge,
    ShadowInstance,
    SnapshotFactory,
    check,
    check_accumulator,
    layers_of,
    references_of,
)
from theodolite.api.probing.signals import (
    DriftAction,
    DriftSignal,
    ProbeOutcome,
    ProbeReport,
    drift_signal,
    session_status,
)
from theodolite.core.budget import Budget
from theodolite.core.calibration import Calibration
from theodolite.core.errors import CalibrationError, EventError
from theodolite.core.event import ModelCalled
from theodolite.core.inquiry import Role
from theodolite.core.model import Model
from theodolite.core.policy import Decision, highest
from theodolite.core.reading import Cause, Failure
from theodolite.core.redaction import DenyAll, Redactor
from theodolite.core.snapshot import StateSnapshot
from theodolite.core.text import brief, printable
from theodolite.detectors.behavior.accumulation import DriftAccumulator, ProbeOutcomeFacts, Settled
from theodolite.detectors.behavior.detector import SESSION, BehaviorDetector, BehaviorSettings, BehaviorState
from theodolite.detectors.behavior.library import ProbeLibrary
from theodolite.detectors.behavior.references import Reference
from theodolite.detectors.behavior.schedule import ScheduleSettings
from theodolite.runtime.drive import Panel
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.session import Session
from theodolite.verifiers.triangulation import TriangulationVerifier

__all__ = ("ProbePipeline",)

_LOG = logging.getLogger(__name__)

# Seconds for one answer of an inference function: what the kernel gives any model.
TIMEOUT = 30.0
# What the kernel calls a redactor that failed.
_REDACTOR = "redactor"
# Sessions that are remembered: those that were heard of last. Our choice: the open sessions of a large host.
_SESSIONS = 10_000
# Signals of a session that a report shows.
_TIMELINE = 64
# The caller's scheduler decides, and nothing here holds back what it lets pass: this cap is none. What bounds it is
# `budget`, or the caller's own `settings`.
_UNSCHEDULED = BehaviorSettings(
    schedule=ScheduleSettings(jitter_seconds=0.0, cooldown_window_seconds=0.0, max_probes_per_session=2**31)
)


class _Seen:
    """What was told of one session.

    `models` are those that it is known to run on; `going` counts the runs that are under way; `over`: it is forgotten
    when none is.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.models: tuple[str, ...] = ()
        self.going = 0
        self.over = False
        self.triangulated = 0
        self.timeline: deque[DriftSignal] = deque(maxlen=_TIMELINE)


class ProbePipeline:
    """Probes sessions when the scheduler says so: one Monitor of ours, with axor-probe's parts around it.

    `run` does not raise for what the parts do; how it ended is in the report's `outcome`, and `outcome` and `detail`
    here say it of the last run, also where there is no report. Each session has its own evidence: that of `accumulator`
    is for the session it names. `references` are benign conversations of the operator, as of BehaviorDetector.
    `calibration` is an artefact; without one nothing restricts. `budget` bounds what is asked, as of Monitor: without
    it only the scheduler does. `timeout` is in seconds, for one answer, and for what each other part is asked; a
    ProbeController alone waits as long as its schedule says. Safe for concurrent runs on one event loop.
    State: some kilobytes for each of the last 10,000 sessions that were heard of; `forget` those that are over.

    The model of an event is held against that of the executor, where both were named: another one is a surrogate, whose
    answers find nothing and do not act. An executor without a name is taken to ask the session's own model: nobody can
    see what a function asks.

    Raises ConfigError for a part that is something else, or lacks what it is asked for, for an accumulator of another
    version of the library than the one here, and for references of which none would be held against a session;
    CalibrationError for an artefact whose coefficients are not of their form.
    """

    def __init__(  # noqa: PLR0913 - axor-probe's parts, by name
        self,
        *,
        scheduler: ProbeScheduler,
        snapshot_factory: SnapshotFactory,
        executor: ProbeExecutor,
        shadow_factory: DefaultShadowInstanceFactory,
        comparator: DefaultComparator | None = None,
        accumulator: DriftAccumulator | None = None,
        redactor: Redactor | None = None,
        audit_store: ProbeAuditStore | None = None,
        library: ProbeLibrary | None = None,
        references: Iterable[Reference] = (),
        integrations: Iterable[IntegrationLayer] = (),
        calibration: Calibration | None = None,
        budget: Budget | None = None,
        settings: BehaviorSettings | None = None,
        timeout: float = TIMEOUT,
        secret: bytes | None = None,
    ) -> None:
        check(
            scheduler=scheduler,
            snapshot_factory=snapshot_factory,
            executor=executor,
            shadow_factory=shadow_factory,
            comparator=comparator,
            accumulator=accumulator,
            redactor=redactor,
            audit_store=audit_store,
            library=library,
            calibration=calibration,
            budget=budget,
            settings=settings,
        )
        check_accumulator(accumulator, library)
        self._scheduler, self._snapshots = scheduler, snapshot_factory
        self._accumulator, self._executor = accumulator, executor
        self._integrations = layers_of(integrations)
        self.audit_store = ProbeAuditStore() if audit_store is None else audit_store
        judge = comparator.judge if comparator is not None else None
        given = _as_wired(settings or _UNSCHEDULED, shadow_factory, judge)
        own, gates = references_of(references), None if calibration is None else calibration.gates
        detector = BehaviorDetector(given, library=library, references=own, gates=gates)
        self._detector = detector if calibration is None else _tuned(detector, calibration)
        self._players = _players(executor, shadow_factory)
        judges = {} if judge is None else {Role.JUDGE: judge.model}
        self.monitor = Monitor(
            [self._detector],
            verifiers=[] if shadow_factory.baseline is None else [TriangulationVerifier()],
            redactor=PayloadRedactor() if redactor is None else redactor,
            store=self.audit_store,
            panel=Panel({**self._players, **judges}, timeout=seconds("timeout", timeout)),
            calibration=calibration,
            budget=budget,
            secret=secret_bytes(secret),
        )
        self._seen: OrderedDict[str, _Seen] = OrderedDict()
        self._timeout = timeout
        self.outcome, self.detail = ProbeOutcome.NOT_DUE, ""
        self.integration_failures = 0

    async def run(self, event: RuntimeEvent) -> ProbeReport | None:
        """Probe the session of an event, if it is due; None where it is not.

        Raises EventError for what is no RuntimeEvent, ConfigError for a session that has another agent than before, and
        StoreError where nothing can be kept.
        """
        if not isinstance(event, RuntimeEvent):  # pyright: ignore[reportUnnecessaryIsInstance] - of untyped callers
            raise EventError(f"a pipeline is told a RuntimeEvent to run, not a {type(event).__name__}")
        due = await self._due(event)
        if due is False:
            self._ended(ProbeOutcome.NOT_DUE)
            return None
        if due is not True:
            detail = due.detail if isinstance(due, Failure) else f"it gave {type(due).__name__}, not a bool"
            return await self._without(event, ProbeOutcome.FAILED, f"the scheduler: {detail}")
        snapshot = await within(lambda: self._snapshots.create(event), "snapshot_factory", self._timeout)
        if not isinstance(snapshot, StateSnapshot):
            detail = snapshot.detail if isinstance(snapshot, Failure) else f"it gave {type(snapshot).__name__}"
            return await self._without(event, ProbeOutcome.FAILED, f"the snapshot factory: {detail}")
        if snapshot.session_id != event.session_id:
            return await self._without(
                event, ProbeOutcome.FAILED, "the snapshot factory: its snapshot is of another session"
            )
        shown = await within(partial(self._executor.sanitized, snapshot), "context_sanitizer", self._timeout)
        if not isinstance(shown, StateSnapshot):
            detail = shown.detail if isinstance(shown, Failure) else type(shown).__name__
            return await self._without(event, ProbeOutcome.FAILED, f"the context sanitizer: {detail}")
        snapshot = shown if shown.snapshot_id else replace(shown, snapshot_id=uuid4().hex)
        with self._under_way(event) as seen:
            session = seen.session
            asked = session.request_probe(event.event_type, snapshot=snapshot)
            self.audit_store.note(session.id, event.agent_id, asked.seq, snapshot.snapshot_id)
            try:
                decisions = (asked, *await session.drain(asked.seq))
            except BaseException:
                # Whoever asked went away: what is open would hold a place in the queue for good.
                session.abandon(asked.seq)
                raise
            report = self._report(event, seen, snapshot, decisions)
            await self._emit(report)
        return report

    async def _due(self, event: RuntimeEvent) -> object:
        """Return what the scheduler says; one that has a `wait`, as our ProbeController, is waited for."""
        scheduler: object = self._scheduler
        due = await within(lambda: self._scheduler.evaluate(event), "scheduler", self._timeout)
        if due is not True:
            return due
        # A probe of ours may have to wait for others of its session, each of them a cooldown.
        patience = math.inf if isinstance(scheduler, ProbeController) else self._timeout

        def wait() -> object:
            wait: object = getattr(scheduler, "wait", None)
            return wait(event) if callable(wait) else True

        return await within(wait, "scheduler", patience)

    @contextmanager
    def _under_way(self, event: RuntimeEvent) -> Generator[_Seen, None, None]:
        """Open the session of an event, and keep it from being forgotten meanwhile."""
        seen = self._session(event)
        seen.going += 1
        try:
            yield seen
        finally:
            seen.going -= 1
            if seen.over and not seen.going:
                self.forget(seen.session.id)

    def _session(self, event: RuntimeEvent) -> _Seen:
        session = self.monitor.session(event.session_id, agent=event.agent_id)
        seen = self._seen.get(session.id)
        if seen is None or seen.session is not session:
            seen = self._seen[session.id] = _Seen(session)
            if self._accumulator is not None and self._accumulator.session_id == session.id:
                session.adopt(self._detector.name, BehaviorState(accumulator=self._accumulator))
            accumulator = self._accumulated(session)
            accumulator.session_id = accumulator.session_id or session.id
        self._seen.move_to_end(session.id)
        while len(self._seen) > _SESSIONS:
            idle = next((one for one in self._seen.values() if not one.going and one is not seen), None)
            if idle is None:
                break
            self.forget(idle.session.id)
        self._tell_models(seen, event.model)
        return seen

    def _tell_models(self, seen: _Seen, own: str) -> None:
        """Tell a session what it runs on: its host's word, or else whoever answers, in that model's place."""
        players = dict.fromkeys(model.name for model in self._players.values())
        executor = self._executor
        if own and executor.named:
            players = dict.fromkeys([own, *[name for name in players if name != executor.model.name]])
        if tuple(players) == seen.models:
            return
        seen.models = tuple(players)
        for name in players:
            seen.session.observe(ModelCalled(model=name))
        state = seen.session.recall(self._detector.name)
        if isinstance(state, BehaviorState):
            # What it was told before does not stand: of two hosts' words the last one counts.
            seen.session.adopt(self._detector.name, replace(state, models=seen.models))

    def _report(
        self, event: RuntimeEvent, seen: _Seen, snapshot: StateSnapshot, decisions: tuple[Decision, ...]
    ) -> ProbeReport:
        last = decisions[-1]
        signals = [signal for decision in decisions for signal in decision.signals]
        accumulator = self._accumulated(seen.session)
        status = session_status(signals, SESSION)
        signal = drift_signal(
            last,
            agent=event.agent_id,
            snapshot_id=snapshot.snapshot_id,
            at=snapshot.timestamp,
            longitudinal=accumulator.longitudinal(self._detector.tuning),
            status=status,
        )
        if signal is not None:
            seen.timeline.append(signal)
            seen.triangulated += signal.triangulation_result is not None
        outcome, detail = _outcome(decisions, signal)
        self.outcome, self.detail = outcome, detail
        return ProbeReport(
            **structs.asdict(accumulator.report(tuning=self._detector.tuning)),
            outcome=outcome,
            agent_id=event.agent_id,
            model=event.model,
            probes_triangulated=seen.triangulated,
            timeline=tuple(seen.timeline),
            action=highest(decision.action for decision in decisions),
            calibration_status=status,
            signal=signal,
            calls=seen.session.spent.calls,
            detail=detail,
        )

    def forget(self, session_id: str) -> None:
        """Close a session that is over. One of that id begins anew; what was kept of it stays in the store.

        One that is under way is forgotten when its run ends. Raises ConfigError for an id that is no text.
        """
        session_id = printable(of_kind("session_id", session_id, str))
        seen = self._seen.get(session_id)
        if seen is not None and seen.going:
            seen.over = True
            return
        self._seen.pop(session_id, None)
        self.audit_store.forget(session_id)
        open_ = next((one for one in self.monitor.sessions if one.id == session_id), None)
        if open_ is not None:
            open_.close()

    def _accumulated(self, session: Session) -> DriftAccumulator:
        state = session.recall(self._detector.name)
        return state.accumulator if isinstance(state, BehaviorState) else DriftAccumulator(session_id=session.id)

    async def _without(self, event: RuntimeEvent, outcome: ProbeOutcome, detail: str) -> ProbeReport:
        """Return the report of a run that never got to ask anybody."""
        detail = await self._redacted(detail)
        self._ended(outcome, detail)
        seen = self._session(event)
        accumulator = self._accumulated(seen.session)
        # Nobody was asked, and a session that cannot be probed is not a clean one.
        version = accumulator.probe_library_version
        accumulator.add(
            ProbeOutcomeFacts(
                probe_id="", probe_library_version=version, session_id=event.session_id, settled=Settled.FAILED
            )
        )
        return ProbeReport(
            **structs.asdict(accumulator.report(tuning=self._detector.tuning)),
            outcome=outcome,
            agent_id=event.agent_id,
            model=event.model,
            probes_triangulated=seen.triangulated,
            timeline=tuple(seen.timeline),
            detail=detail,
        )

    async def _redacted(self, detail: str) -> str:
        """Return a detail as it may be told; where its redactor fails, nothing of it."""
        text = await within(lambda: self.monitor.fleet.redactor.text(detail), _REDACTOR, self._timeout)
        return text if isinstance(text, str) else DenyAll().text(detail)

    def _ended(self, outcome: ProbeOutcome, detail: str = "") -> None:
        self.outcome, self.detail = outcome, detail

    async def _emit(self, report: ProbeReport) -> None:
        """Tell the integrations of what is significant, all at once."""
        if report.action is DriftAction.LOG_ONLY:
            return
        async with anyio.create_task_group() as group:
            for layer in self._integrations:
                group.start_soon(self._told, layer, report)

    async def _told(self, layer: IntegrationLayer, report: ProbeReport) -> None:
        told = await within(lambda: layer.emit(report, report.action), "integration", self._timeout)
        if isinstance(told, Failure):
            self.integration_failures += 1
            _LOG.warning("an integration did not take a report (%s)", told.cause)


def _outcome(decisions: Sequence[Decision], signal: DriftSignal | None) -> tuple[ProbeOutcome, str]:
    """Return how a run ended, and why where there is no answer."""
    signals = [one for decision in decisions for one in decision.signals]
    failures = [one.said for one in signals if isinstance(one.said, Failure)]
    stopped = next((failure for failure in failures if failure.detector == _REDACTOR), None)
    if stopped is not None:
        return ProbeOutcome.REDACTION_STOPPED, stopped.detail
    if signal is None:
        return _unanswered(failures, asked=len(decisions) > 1)
    detail = failures[0].detail if failures else ""
    # What was done is told before the form in which it was.
    if any(one.alarmed for one in signals):
        return ProbeOutcome.DRIFT, detail
    if signal.anomaly:
        return ProbeOutcome.INVALID, signal.anomaly
    return (ProbeOutcome.CLEAN if signal.measurable else ProbeOutcome.NOT_MEASURABLE), detail


def _unanswered(failures: Sequence[Failure], *, asked: bool) -> tuple[ProbeOutcome, str]:
    if not failures:
        return ProbeOutcome.FAILED, "nobody answered"
    # A budget is asked only when the inquiry is under way.
    if asked and failures[0].cause is not Cause.NO_EVIDENCE:
        return ProbeOutcome.FAILED, failures[0].detail
    refused = failures[0].cause is Cause.MALFORMED
    return (ProbeOutcome.INVALID if refused else ProbeOutcome.SKIPPED), failures[0].detail


def _tuned(detector: BehaviorDetector, calibration: Calibration) -> BehaviorDetector:
    """Return the detector with the coefficients that an artefact has for it, in this version."""
    if not calibration.current(detector.name, {detector.name: detector.version}):
        return detector
    try:
        return detector.tuned(calibration.coefficients.get(detector.name, {}))
    except ValueError as error:
        raise CalibrationError(
            f"the artefact {brief(calibration.id)} cannot tune {detector.name} (coefficients.{detector.name}): {error}"
        ) from error


def _as_wired(
    settings: BehaviorSettings, factory: DefaultShadowInstanceFactory, judge: SemanticJudge | None
) -> BehaviorSettings:
    return replace(settings, system=factory.shadow.system_prompt, judge=judge is not None, scheduled=False)


def _players(executor: ProbeExecutor, factory: DefaultShadowInstanceFactory) -> dict[Role, Model]:
    """Return who answers for each arm."""
    players: dict[Role, Model] = {Role.SUBJECT: executor.model, Role.SHADOW: _named(factory.shadow, executor)}
    if factory.baseline is not None:
        players[Role.BASELINE] = _named(factory.baseline, executor)
    return players


def _named(instance: ShadowInstance, executor: ProbeExecutor) -> FunctionModel:
    """Return the model of an instance; another function under the name of the executor's gets a name of its own.

    That two functions ask one model, nobody can see; one function without a name of its own is the executor's.
    """
    if instance.inference_fn == executor.inference_fn:
        return instance.model if instance.named else executor.model
    if instance.model.name != executor.model.name:
        return instance.model
    return FunctionModel(instance.inference_fn, name=f"{instance.model.name} of {type(instance).__name__}")
