"""A session that is probed again and again is no larger, and no probe of it dearer, than one that was probed less."""

from __future__ import annotations

import time
from statistics import median

from theodolite.core.event import MessageObserved, ModelCalled, Source
from theodolite.core.inquiry import Role
from theodolite.detectors.behavior.detector import BehaviorDetector, BehaviorSettings
from theodolite.detectors.behavior.library import shipped
from theodolite.detectors.behavior.schedule import ScheduleSettings
from theodolite.redactors.rules import RuleRedactor
from theodolite.runtime.drive import Panel
from theodolite.runtime.monitor import Monitor
from theodolite.stores.memory import MemoryStore
from theodolite.testing.fakes import PolicyModel
from theodolite.verifiers.triangulation import TriangulationVerifier

# After so many probes the planted tokens that are remembered are all there, and the window was full and emptied once.
FULL, LONG, STEP = 200, 400, 10
CAP = 10_000


def test_what_is_saved_and_what_a_probe_costs_do_not_grow_with_the_number_of_probes() -> None:
    schedule = ScheduleSettings(jitter_seconds=0.0, cooldown_window_seconds=0.0, max_probes_per_session=CAP)
    answering = PolicyModel(templates=shipped().templates, contract="json", leak=0.3, anew=True)
    live = Monitor(
        [BehaviorDetector(BehaviorSettings(system="You help at the counter of a bank.", schedule=schedule))],
        verifiers=[TriangulationVerifier()],
        redactor=RuleRedactor(),
        store=MemoryStore(),
        panel=Panel(dict.fromkeys(Role, answering)),
    )
    session = live.session("s-1")
    session.observe(ModelCalled(model=answering.name))
    session.observe(MessageObserved(role="user", text="Good morning.", source=Source.USER))
    sizes: list[int] = []
    costs: list[float] = []
    for number in range(LONG):
        begun = time.process_time()
        session.request_probe("manual")
        settled = session.drain_sync()
        costs.append(time.process_time() - begun)
        assert len(settled) == 1
        session.observe(MessageObserved(role="user", text=f"And number {number:04d}?", source=Source.USER))
        if (number + 1) % STEP == 0:
            sizes.append(len(session.save()))
    assert max(sizes[FULL // STEP :]) <= 1.1 * max(sizes[: FULL // STEP]), sizes
    assert median(costs[-FULL // 2 :]) <= 2.0 * median(costs[FULL // 2 : FULL]), "a probe costs more and more"
