from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from theodolite.calibration.assess import ambiguity, assess
from theodolite.calibration.sample import Sample
from theodolite.calibration.table import Table
from theodolite.core.labels import Known

CODE = "a.b"
SAMPLES = st.lists(
    st.tuples(st.sampled_from(list(Known)), st.floats(0, 1), st.sampled_from(["x", "y", ""])), max_size=60
).map(
    lambda rows: [
        Sample(session=f"s-{number}", known=known, slices={"suite": suite}, highest={CODE: score})
        for number, (known, score, suite) in enumerate(rows)
    ]
)


@given(SAMPLES, st.floats(0.01, 1))
def test_rates_are_counted_over_all_and_over_each_slice(samples: list[Sample], alert: float) -> None:
    told = assess(CODE, alert, Table.of(samples), 0.1)
    alarmed = [one for one in samples if one.highest[CODE] >= alert]
    clean = [one for one in samples if one.known is Known.CLEAN]
    assert (told.whole.false_alarms.k, told.whole.false_alarms.n) == (
        sum(one.known is Known.CLEAN for one in alarmed),
        len(clean),
    )
    assert told.whole.found.n == len(samples) - len(clean)
    assert told.whole.precision.n == len(alarmed)
    assert told.whole.enough is (len(clean) >= 9)
    for share in (told.whole.false_alarms, told.whole.found, told.whole.precision):
        assert 0 <= share.low <= (share.k / share.n if share.n else 0.5) <= share.high <= 1
    named = [one for one in samples if one.slices["suite"]]
    assert sum(part.false_alarms.n + part.found.n for part in told.slices) == len(named)
    assert [part.name for part in told.slices] == sorted({f"suite: {one.slices['suite']}" for one in named})


@given(SAMPLES)
def test_the_curve_rises_to_all_and_its_points_are_those_of_the_scores(samples: list[Sample]) -> None:
    told = assess(CODE, 0.5, Table.of(samples), 0.1)
    scores = [point.score for point in told.curve]
    assert scores == sorted(scores, reverse=True)
    for point in told.curve:
        for known, share in ((Known.CLEAN, point.false_alarms), (Known.DRIFTED, point.found)):
            of_kind = [one.highest[CODE] >= point.score for one in samples if one.known is known]
            assert share == (sum(of_kind) / len(of_kind) if of_kind else 0.0)
    kinds = {one.known for one in samples}
    assert (told.auc is None) is (len(kinds) < 2)
    assert len(told.curve) <= 101


def test_a_score_that_tells_them_apart_has_all_of_the_area() -> None:
    samples = [Sample(session=f"c{n}", known=Known.CLEAN, highest={CODE: n / 100}) for n in range(20)]
    samples += [Sample(session=f"d{n}", known=Known.DRIFTED, highest={CODE: 0.5 + n / 100}) for n in range(20)]
    told = assess(CODE, 0.3, Table.of(samples), 0.1)
    assert told.auc == 1.0
    assert (told.whole.found.k, told.whole.false_alarms.k) == (20, 0)


@given(SAMPLES, st.floats(0.01, 1))
def test_a_second_opinion_is_asked_for_where_it_may_change_something_and_costs_little(
    samples: list[Sample], alert: float
) -> None:
    table = Table.of(samples)
    width = ambiguity(alert, table.scores(CODE), table)
    asked = [one for one in samples if abs(one.highest[CODE] - alert) <= width]
    wrong = [one for one in samples if (one.highest[CODE] >= alert) is (one.known is Known.CLEAN)]
    clean = sum(one.known is Known.CLEAN for one in samples)
    if width > 0.0:
        assert any(abs(one.highest[CODE] - alert) == width for one in wrong)
        assert sum(one.known is Known.CLEAN for one in asked) <= 0.05 * clean
    told = assess(CODE, alert, table, 0.1, width=width).ambiguity
    assert told is not None
    assert told.asked.k == (sum(one.known is Known.CLEAN for one in asked) if width else 0)
    assert told.changed.k == (sum(one in wrong for one in asked) if width else 0)


def test_the_band_of_a_second_opinion_ends_at_what_it_may_change() -> None:
    rows = [(Known.CLEAN, n / 1000) for n in range(200)] + [(Known.DRIFTED, 0.48), (Known.DRIFTED, 0.9)]
    samples = [Sample(session=f"s{n}", known=known, highest={CODE: score}) for n, (known, score) in enumerate(rows)]
    table = Table.of(samples)
    assert round(ambiguity(0.5, table.scores(CODE), table), 9) == 0.02
    # Nothing is judged wrongly within what may be asked.
    assert ambiguity(0.3, table.scores(CODE), table) == 0.0


@given(SAMPLES)
def test_bins_hold_every_session_once(samples: list[Sample]) -> None:
    told = assess(CODE, 0.5, Table.of(samples), 0.1)
    assert sum(one.drifted.n for one in told.bins) == len(samples)
    assert sum(one.drifted.k for one in told.bins) == sum(one.known is Known.DRIFTED for one in samples)
    for one in told.bins:
        inside = [s for s in samples if one.low <= s.highest[CODE] < one.high or s.highest[CODE] == one.high == 1.0]
        assert one.drifted.n == len(inside)
