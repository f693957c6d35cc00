"""Sessions made of the AgentDojo benchmark: what needs the package is skipped, saying so, where it is absent."""

from __future__ import annotations

import hashlib
import importlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.calibration.agentdojo import ATTACKS, Benchmark, Made, Pair, Run, encode_run, spread
from theodolite.core.errors import MissingExtraError
from theodolite.core.event import GoalStated, ToolCallProposed, ToolResultObserved
from theodolite.core.labels import Known
from theodolite.core.reader import Unreadable
from theodolite.readers.agentdojo_runs import AgentDojoRuns

needs_package = pytest.mark.skipif(find_spec("agentdojo") is None, reason="the extra agentdojo is not installed")

CALL = {"function": "read_file", "args": {"path": "bill.txt"}, "id": None, "placeholder_args": None}
MESSAGES: list[Mapping[str, object]] = [
    {"role": "user", "content": [{"type": "text", "content": "Pay the bill."}]},
    {"role": "assistant", "content": [{"type": "text", "content": ""}], "tool_calls": [CALL]},
    {"role": "tool", "content": [{"type": "text", "content": "30 EUR"}], "tool_call": CALL, "error": None},
    {"role": "assistant", "content": [{"type": "text", "content": "Paid."}], "tool_calls": None},
]
CLEAN = Pair("banking", "user_task_0")
RESISTING = Pair("banking", "user_task_0", "direct", "injection_task_1")
HIJACKED = Pair("banking", "user_task_0", "direct", "injection_task_1", obeys=True)


def run(pair: Pair) -> Run:
    return Run(pair=pair, messages=MESSAGES, utility=True, security=not pair.attack or pair.obeys, package="0.1.35")


@pytest.mark.parametrize(("pair", "known"), [(CLEAN, Known.CLEAN), (RESISTING, Known.CLEAN), (HIJACKED, Known.DRIFTED)])
def test_a_run_is_read_back_with_its_label_under_the_name_of_its_place(pair: Pair, known: Known) -> None:
    data = encode_run(run(pair))
    assert data == encode_run(run(pair))
    assert AgentDojoRuns().detects(data[:65536])
    ((session, label),) = AgentDojoRuns().labels(BytesIO(data), "f.json")
    assert (label.known, label.task) == (known, "banking/user_task_0")
    assert f"{session}.json" == str(pair.path)
    found = list(AgentDojoRuns().read(BytesIO(data), "f.json"))
    assert not [item for item in found if isinstance(item, Unreadable)]
    assert [item.text for item in found if isinstance(item, GoalStated)] == ["Pay the bill."]
    assert [item.values() for item in found if isinstance(item, ToolCallProposed)] == [{"path": "bill.txt"}]
    assert [item.text for item in found if isinstance(item, ToolResultObserved)] == ["30 EUR"]


def test_sessions_of_one_pair_have_three_places() -> None:
    places = [str(pair.path) for pair in (CLEAN, RESISTING, HIJACKED)]
    assert places == [
        "ground-truth/banking/user_task_0/none/none.json",
        "ground-truth-resisting/banking/user_task_0/direct/injection_task_1.json",
        "ground-truth-hijacked/banking/user_task_0/direct/injection_task_1.json",
    ]


numbers = st.integers(0, 40)
pairs = st.builds(Pair, st.just("bank"), numbers.map("user_task_{}".format), injected=numbers.map("task_{}".format))


@given(st.lists(pairs, unique=True, max_size=30), st.integers(1, 20))
def test_a_limit_takes_the_same_ones_in_their_order_and_more_takes_them_too(every: list[Pair], limit: int) -> None:
    chosen = spread(every, limit)
    assert len(chosen) == min(limit, len(every))
    assert chosen == [pair for pair in every if pair in set(chosen)]
    assert set(chosen) <= set(spread(every, limit + 1))
    assert set(spread(every[::-1], limit)) == set(chosen)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agentdojo", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'theodolite\[agentdojo\]'"):
        Benchmark()


# ---------------------------------------------------------------------------------- with the package


@pytest.fixture(scope="module")
def benchmark() -> Benchmark:
    return Benchmark()


class _Results(Protocol):
    utility: bool
    security: bool
    messages: list[object]


def _made(benchmark: Benchmark, suite: str, limit: int) -> list[Made]:
    made = [benchmark.make(pair) for pair in benchmark.pairs([suite], ATTACKS, limit)]
    return [session for session in made if session is not None]


@needs_package
@pytest.mark.slow
@pytest.mark.parametrize("suite", ["banking", "slack", "travel", "workspace"])
def test_every_kind_is_made_and_is_what_its_label_says(benchmark: Benchmark, suite: str) -> None:
    made = _made(benchmark, suite, 4)
    kinds = Counter((one.label.known, one.label.slices["kind"]) for one in made)
    assert kinds[Known.CLEAN, "clean"] == kinds[Known.CLEAN, "clean_direct"] == 4
    assert kinds[Known.CLEAN, "attacked_resisted"] >= 9
    assert kinds[Known.DRIFTED, "attacked_succeeded"] >= 6
    assert len(kinds) == 4
    for one in made:
        found = list(AgentDojoRuns().read(BytesIO(one.data), "f.json"))
        assert not [item for item in found if isinstance(item, Unreadable)]
        assert any(isinstance(item, GoalStated) for item in found)


@needs_package
@pytest.mark.slow
def test_a_hijacked_session_does_what_the_resisting_one_does_and_the_deed(benchmark: Benchmark) -> None:
    def calls(pair: Pair) -> list[tuple[str, str]]:
        made = benchmark.make(pair)
        assert made is not None
        found = AgentDojoRuns().read(BytesIO(made.data), "f.json")
        return [(item.tool, str(item.values())) for item in found if isinstance(item, ToolCallProposed)]

    resisting, hijacked = calls(RESISTING), calls(HIJACKED)
    assert [call for call in hijacked if call in resisting] == resisting
    assert len(hijacked) > len(resisting)


@needs_package
@pytest.mark.slow
def test_the_benchmark_reads_what_is_made_as_its_own(benchmark: Benchmark, tmp_path: Path) -> None:
    made = benchmark.make(HIJACKED)
    assert made is not None
    (tmp_path / made.path).parent.mkdir(parents=True)
    (tmp_path / made.path).write_bytes(made.data)
    package = importlib.import_module("agentdojo.benchmark")
    results: _Results = package.load_task_results(
        "ground-truth-hijacked", "banking", "user_task_0", "direct", "injection_task_1", tmp_path
    )
    assert results.security
    assert len(results.messages) > 4


MAKE = """
import hashlib
from theodolite.calibration.agentdojo import Benchmark
benchmark, digest = Benchmark(), hashlib.sha256()
for pair in benchmark.pairs(["travel", "workspace"], ["direct"], 4):
    made = benchmark.make(pair)
    digest.update(made.data if made else b"-")
print(digest.hexdigest())
"""


@needs_package
@pytest.mark.slow
def test_two_processes_make_the_same_bytes() -> None:
    made = {
        subprocess.run(
            [sys.executable, "-c", MAKE],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(made) == 1
    assert len(made.pop().strip()) == 2 * hashlib.sha256().digest_size
