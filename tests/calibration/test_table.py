from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from theodolite.calibration.sample import FOLDS, Sample
from theodolite.calibration.table import Table
from theodolite.core.labels import Known

NAMES = st.sampled_from(["", "a", "b", "c"])
SAMPLES = st.lists(
    st.builds(
        Sample,
        session=st.uuids().map(str),
        known=st.sampled_from(list(Known)),
        agent=NAMES,
        models=st.tuples(NAMES),
        task=NAMES,
        slices=st.dictionaries(st.sampled_from(["suite", "kind"]), NAMES, max_size=2),
        highest=st.dictionaries(st.sampled_from(["x.a", "x.b"]), st.floats(0, 1), max_size=2),
        front=st.lists(st.dictionaries(st.just("x.a"), st.floats(0.1, 1), min_size=1), max_size=2).map(tuple),
    ),
    max_size=30,
)


@given(SAMPLES)
def test_a_table_says_what_its_samples_say(samples: list[Sample]) -> None:
    table = Table.of(samples)
    assert len(table) == len(samples)
    clean = [sample for sample in samples if sample.known is Known.CLEAN]
    assert table.agents == Counter(sample.agent for sample in clean)
    assert table.models == Counter(model for sample in clean for model in sample.models)
    assert list(table.codes) == sorted({code for sample in samples for code in sample.highest})
    for code in ("x.a", "x.b", "x.never"):
        assert list(table.scores(code)) == [sample.highest.get(code, 0.0) for sample in samples]
    for row, sample in enumerate(samples):
        assert table.clean(row) is (sample.known is Known.CLEAN)
        assert table.fold(row) == sample.fold
        assert table.front(row) == sample.front
    for known in Known:
        assert list(table.rows(known)) == [row for row, sample in enumerate(samples) if sample.known is known]
    assert sorted(row for fold in table.folds(range(len(table))) for row in fold) == list(range(len(table)))
    assert len(table.folds([])) == FOLDS


@given(SAMPLES)
def test_slices_hold_the_sessions_that_carry_their_name(samples: list[Sample]) -> None:
    found = dict(Table.of(samples).slices())
    expected: dict[str, list[int]] = {}
    for row, sample in enumerate(samples):
        for key, name in sample.slices.items():
            if name:
                expected.setdefault(f"{key}: {name}", []).append(row)
    assert {name: list(rows) for name, rows in found.items()} == expected
    assert list(found) == sorted(found)


@given(st.lists(st.sampled_from(["t1", "t2", "t3"]), max_size=20))
def test_sessions_of_one_task_are_in_one_fold(tasks: list[str]) -> None:
    samples = [Sample(session=f"s{n}", known=Known.CLEAN, task=task) for n, task in enumerate(tasks)]
    folds = {sample.task: sample.fold for sample in samples}
    assert all(sample.fold == folds[sample.task] for sample in samples)
