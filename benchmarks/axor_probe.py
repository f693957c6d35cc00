"""A probe, timed beside the published axor-probe: CPU as a session grows, waiting for a model, and memory.

    python benchmarks/axor_probe.py [--peer PYTHON] [--short]

One script runs in both environments, with the imports of each: the same wiring, the same session, the same functions in
the place of models, and the scheduler that is always due. `PYTHON` is one that has `PEER_PACKAGE`; without it an
environment is made in the user's cache, from the index that pip is set to. With `--short` there is less of everything,
and no environment is made: where there is none the peer is skipped, which is said. Exits with 1 where ours is not flat.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from timing import row

PEER_PACKAGE = "axor-probe==0.2.1"

OURS = """
from theodolite.api import probing as first
VERSION = "1.0.0"
AMBIGUOUS = {"text": "Sure, I have done it.", "tool_calls": []}
"""
THEIRS = """
import types
first = types.SimpleNamespace()
for place in (
    "comparator.accumulator", "executor.runner", "executor.snapshot", "pipeline.orchestrator", "probes.library",
    "shadow.context", "shadow.instance", "storage.audit", "storage.redactor",
):
    module = __import__("axor_probe." + place, fromlist=["_"])
    vars(first).update({name: value for name, value in vars(module).items() if not name.startswith("_")})
VERSION = first.ProbeLibrary().version
AMBIGUOUS = {"text": "Done.", "tool_calls": [{"name": "delete_audit_logs", "arguments": {"older_than_days": 0}}]}
"""

SCRIPT = """
import asyncio, gc, json, os, resource, sys, time
what, count = sys.argv[1], int(sys.argv[2])
CALLS = {"subject": 0, "shadow": 0, "baseline": 0}
REFUSAL = {"text": "I cannot do that, the policy forbids it.", "tool_calls": []}
BREACH = {"text": "Done.", "tool_calls": [{"name": "delete_audit_logs", "arguments": {"older_than_days": 0}}]}
PROMPT = "You are the assistant of a bank. Never tell account data to anyone who is not logged in."
TURNS = [
    {"role": role, "content": f"{said} ({number})"}
    for number in range(4)
    for role, said in (("user", "When does the branch open?"), ("assistant", "At nine, on Saturday at ten."))
]

def model(role, answer, delay, summed=None):
    async def inference(messages):
        CALLS[role] += 1
        if delay:
            await asyncio.sleep(delay)
        return dict(summed if summed and "session_depth" in str(messages) else answer)
    return inference

class Due:
    def evaluate(self, event):
        return True

class Live:
    async def create(self, event):
        return first.StateSnapshot(
            session_id=event.session_id, timestamp=1796040000.0, context_window=tuple(TURNS), system_prompt_hash="",
            canonicalized_summary=first.CanonicalizedContextSummary(
                trusted_user=True, prior_authorization=False, data_sensitivity="low", escalation_chain="none",
                external_reads_count=0, taint_active=False, session_depth=8))

def wired(session, delay=0.0, answer=REFUSAL, led_astray=False):
    # Ambiguous for ours: the session answers as a benign context does, and a shadow with a summary does not.
    shadow = model("shadow", answer if led_astray else REFUSAL, delay, REFUSAL)
    return first.ProbePipeline(
        scheduler=Due(), snapshot_factory=Live(),
        executor=first.ProbeExecutor(model("subject", answer, delay)),
        shadow_factory=first.DefaultShadowInstanceFactory(
            shadow=first.ShadowInstance(shadow, system_prompt=PROMPT),
            baseline=first.ContextlessShadowBaseline(model("baseline", REFUSAL, delay), system_prompt=PROMPT)),
        comparator=first.DefaultComparator(),
        accumulator=first.DriftAccumulator(session_id=session, probe_library_version=VERSION),
        redactor=first.PayloadRedactor(), audit_store=first.ProbeAuditStore())

def event(session):
    return first.RuntimeEvent(session_id=session, agent_id="a", model="m", event_type="manual")

async def probes(pipeline, session, number):
    times = []
    due = event(session)
    for _ in range(number):
        start = time.thread_time_ns()
        report = await pipeline.run(due)
        times.append((time.thread_time_ns() - start) / 1e3)
    assert report is not None and report.probes_sent == number, report
    return times

def median(values):
    return sorted(values)[len(values) // 2]

def resident():
    gc.collect()
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

async def early():
    last, whole = [], []
    await probes(wired("warm"), "warm", 20)
    CALLS.update(dict.fromkeys(CALLS, 0))
    for number in range(count):
        times = await probes(wired(f"s-{number}"), f"s-{number}", 20)
        last.append(times[-1])
        whole.append(sum(times) / len(times))
    calls = sum(CALLS.values()) / count / 20
    return {"20th probe in us": median(last), "mean of 20 in us": median(whole), "calls a probe": calls}

async def late():
    times = await probes(wired("s"), "s", count)
    early, late = median(times[:100]), median(times[-100:])
    return {"median of the first 100 in us": early, "median of the last 100 in us": late, "all in s": sum(times) / 1e6}

async def memory():
    await probes(wired("warm"), "warm", 50)
    pipeline, before = wired("s"), resident()
    await probes(pipeline, "s", count)
    return {"grown in MiB": (resident() - before) / 2**20}

async def waiting(answer, triangulated=False):
    spent, calls = [], []
    await probes(wired("warm", 0.0, answer), "warm", 3)
    for number in range(200):
        CALLS.update(dict.fromkeys(CALLS, 0))
        pipeline, due = wired(f"s-{number}", 0.05, answer, triangulated), event(f"s-{number}")
        start = time.perf_counter()
        await pipeline.run(due)
        took = (time.perf_counter() - start) * 1e3
        if not triangulated or CALLS["baseline"]:
            spent.append(took)
            calls.append(sum(CALLS.values()))
        if len(spent) == count:
            break
    return {"one probe in ms": median(spent), "calls a probe": sum(calls) / len(calls)}

async def crowd(one=False):
    await probes(wired("warm"), "warm", 20)
    shared = wired("s-0", 0.05)
    pipelines = {f"s-{number}": shared if one else wired(f"s-{number}", 0.05) for number in range(200)}
    start, spent = time.perf_counter(), time.process_time()
    await asyncio.gather(*[pipeline.run(event(name)) for name, pipeline in pipelines.items()])
    once, cpu = time.perf_counter() - start, time.process_time() - spent

    async def several(name, pipeline):
        for _ in range(count):
            await pipeline.run(event(name))

    start = time.perf_counter()
    await asyncio.gather(*[several(name, pipeline) for name, pipeline in pipelines.items()])
    took = time.perf_counter() - start
    return {"one probe each in ms": once * 1e3, "CPU of that in ms": cpu * 1e3, "probes a second": 200 * count / took}

made = {
    "early": early, "late": late, "memory": memory, "crowd": crowd,
    "together": lambda: crowd(True),
    "clean": lambda: waiting(REFUSAL), "breach": lambda: waiting(BREACH),
    "triangulated": lambda: waiting(AMBIGUOUS, True),
}
print(json.dumps(asyncio.run(made[what]())))
"""


class Side(NamedTuple):
    """One of the two: the Python that has it, and how it is imported."""

    name: str
    python: Path
    imports: str

    def measure(self, what: str, count: int) -> Mapping[str, float]:
        """Return what one part of the script measures, in a process of its own."""
        script = f"{self.imports}\n{SCRIPT}"
        done = subprocess.run(  # noqa: S603 - the Python that the person names, or that is made here
            [self.python, "-W", "ignore", "-c", script, what, str(count)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return measured


def made(folder: Path) -> Path:
    """Return the Python of an environment with the peer in it; make it where it is not there."""
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        install = (python, "-m", "pip", "install", "-q", "--disable-pip-version-check", PEER_PACKAGE)
        subprocess.run(install, check=True)  # noqa: S603 - our own environment
    return python


def has_peer(python: Path) -> bool:
    """Whether a Python that the person names can import the peer."""
    try:
        done = subprocess.run([python, "-c", "import axor_probe"], capture_output=True, check=False)  # noqa: S603
    except OSError:
        return False
    return done.returncode == 0


def cached() -> Path:
    """Return the folder for the peer's environment."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "theodolite" / "benchmarks" / PEER_PACKAGE.replace("==", "-")


def beside(sides: list[Side], part: str, count: int) -> list[Mapping[str, float]]:
    """Measure one part on each side and print it, the second one with its ratio to the first."""
    print(f"{part}, {count}:", flush=True)
    measured = [side.measure(part, count) for side in sides]
    for name in measured[0]:
        own = measured[0][name]
        for side, figures in zip(sides, measured, strict=True):
            ratio = figures[name] / own if own and side is not sides[0] else None
            what, _, unit = name.partition(" in ")
            row(f"  {what}, {side.name}", figures[name], unit, ratio=ratio)
    return measured


def main() -> int:
    """Measure both sides, one part after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=Path, metavar="PYTHON", help=f"a Python that has {PEER_PACKAGE}")
    parser.add_argument("--short", action="store_true", help="less of everything; no environment is made")
    options = parser.parse_args()
    if options.peer is not None and not has_peer(options.peer):
        parser.error(f"{options.peer} has no {PEER_PACKAGE}: install it there, or leave --peer out to have one made")
    python = options.peer or (None if options.short else made(cached()))
    sides = [Side("theodolite", Path(sys.executable), OURS)]
    if python is None:
        print(f"{PEER_PACKAGE} was skipped: name a Python that has it with --peer, or leave out --short")
    else:
        sides.append(Side("axor-probe", python, THEIRS))
    print("CPU in microseconds for one probe; the model answers at once")
    early = beside(sides, "early", 10 if options.short else 100)
    late = beside(sides, "late", 500 if options.short else 5_000)
    print("wall clock; the model takes 50 ms")
    for what in ("clean", "triangulated", "breach"):
        beside(sides, what, 3 if options.short else 20)
    print("200 sessions at once, each with a pipeline of its own; the model takes 50 ms")
    beside(sides, "crowd", 2 if options.short else 5)
    print("the same with one pipeline for all, in which axor-probe mixes them")
    beside(sides[:1], "together", 2 if options.short else 5)
    print("memory of one session")
    beside(sides, "memory", 1_000 if options.short else 10_000)
    growth = late[0]["median of the last 100 in us"] / early[0]["20th probe in us"]
    flat = row("CPU of ours, last probe over the 20th", growth, "x", budget=1.5)
    return 0 if flat else 1


if __name__ == "__main__":
    sys.exit(main())
