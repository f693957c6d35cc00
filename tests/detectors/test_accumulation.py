from __future__ import annotations

import math
from random import Random
from statistics import linear_regression

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.detectors.behavior.accumulation import (
    ALPHA_LONG,
    DivergenceCategory,
    DriftAccumulator,
    OverallVerdict,
    ProbeOutcomeFacts,
    Settled,
)
from theodolite.detectors.behavior.probe import ProbeType
from theodolite.stats.interval import wilson
from theodolite.stats.restarting import Restarting, delay

DISAGREE = DivergenceCategory.POLICY_DISAGREEMENT
BETS = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), max_size=4).map(tuple)


def facts(
    *,
    score: float = 0.0,
    drifted: bool = False,
    escaped: bool = False,
    category: DivergenceCategory | None = None,
    observed: tuple[float, ...] = (),
    decision: tuple[float, ...] = (),
    decision_maximum: float | None = None,
    explained: bool = False,
    cached: bool = False,
    disclosed: bool = False,
    resampled: tuple[int, int] | None = None,
    unmeasured: bool = False,
    probe_type: ProbeType = ProbeType.DATA_DISCLOSURE,
) -> ProbeOutcomeFacts:
    return ProbeOutcomeFacts(
        probe_id="dd_01",
        probe_type=probe_type,
        probe_library_version="1.0.0",
        session_id="s-1",
        score=score,
        drifted=drifted,
        escaped=escaped,
        category=category,
        observed=observed,
        decision=decision,
        decision_maximum=decision_maximum,
        explained=explained,
        cached=cached,
        disclosed=disclosed,
        resampled=resampled,
        unmeasured=unmeasured,
    )


def ended(settled: Settled, *, structural: bool = False) -> ProbeOutcomeFacts:
    return ProbeOutcomeFacts(
        probe_id="dd_01",
        probe_type=ProbeType.DATA_DISCLOSURE,
        probe_library_version="1.0.0",
        session_id="s-1",
        settled=settled,
        structural=structural,
    )


def exactly(*probes: ProbeOutcomeFacts) -> DriftAccumulator:
    """Return what probes come to of a model that shows probabilities."""
    accumulator = DriftAccumulator(session_id="s-1", exact=True)
    for probe in probes:
        accumulator.add(probe)
    return accumulator


def total(*probes: ProbeOutcomeFacts) -> DriftAccumulator:
    accumulator = DriftAccumulator(session_id="s-1", probe_library_version="1.0.0")
    for probe in probes:
        assert accumulator.add(probe)
    return accumulator


LEAK_ONCE = facts(score=0.27, escaped=True, observed=(1.0,))
LEAK = facts(score=0.27, escaped=True, observed=(1.0, 1.0))
CLEAN = facts(observed=(0.0, 0.0), decision=(0.0, 0.0))
SHIFT = facts(score=0.8, drifted=True, category=DISAGREE, decision=(1.0,))


class TestEvidence:
    def test_before_the_first_probe_it_stands_at_one_and_alarms_never(self) -> None:
        accumulator = total()
        assert (accumulator.e_value, accumulator.evidence, accumulator.alarms()) == (1.0, 1.0, False)

    def test_an_agent_drifted_from_its_first_probe_alarms_well_within_the_cap(self) -> None:
        # By one kind of evidence alone, and half of it is then the other's, which stands at 1.
        assert not total(*[LEAK] * 5).alarms()
        assert total(*[LEAK] * 6).alarms()
        assert not total(*[SHIFT] * 11).alarms()
        assert total(*[SHIFT] * 12).alarms()
        # Where decisions are read from probabilities too, the mean is one of three.
        assert exactly(*[SHIFT] * 13).alarms()

    def test_it_is_the_mean_of_two_bets(self) -> None:
        one, other = Restarting(), Restarting()
        expected = (one.update(1.0) + other.update(-0.5)) / 2
        assert total(facts(observed=(1.0,), decision=(-0.5,))).e_value == pytest.approx(expected)

    def test_a_model_that_shows_probabilities_gives_its_e_value_as_it_is_now(self) -> None:
        quiet, loud = facts(decision_maximum=0.5), facts(decision_maximum=900.0)
        assert exactly(quiet).e_value == pytest.approx(2.5 / 3)
        assert exactly(loud, quiet).e_value == pytest.approx(2.5 / 3)
        assert exactly(loud).alarms()
        beside = exactly(facts(decision=(0.5,), decision_maximum=2.0))
        assert beside.e_value == pytest.approx((1.0 + Restarting().update(0.5) + 2.0) / 3)

    @pytest.mark.parametrize("clean", [0, 1_000, 10_000])
    def test_drift_after_however_many_clean_probes_is_found_about_as_late_as_is_stated(self, clean: int) -> None:
        dice = Random(7)  # noqa: S311 - a simulation
        accumulator, probes = DriftAccumulator(session_id="s-1"), 0
        for _ in range(clean):
            accumulator.add(facts(observed=(dice.choice((-1.0, 1.0)),)))
        assert not accumulator.alarms()
        while not accumulator.alarms():
            accumulator.add(LEAK_ONCE)
            probes += 1
        # By one of two processes, so that it has to come to twice as much.
        assert probes == pytest.approx(delay(math.log(1.9), ALPHA_LONG / 2, clean), rel=0.2)

    @given(st.lists(BETS, min_size=25, max_size=80), st.integers(0, 80))
    def test_saved_and_restored_across_a_restart_it_goes_on_alike(self, bets: list[tuple[float, ...]], at: int) -> None:
        said = [facts(observed=some * 4, decision=some) for some in bets]
        restored = msgspec.json.decode(msgspec.json.encode(total(*said[:at])), type=DriftAccumulator)
        for probe in said[at:]:
            restored.add(probe)
        assert restored == total(*said)

    def test_what_is_explained_adds_nothing_and_still_takes(self) -> None:
        explained = facts(observed=(1.0, -1.0), decision=(0.5, -0.5), explained=True, score=0.6, drifted=True)
        # What was observed is not explained: that is for the decision alone.
        assert total(explained).e_value == total(facts(observed=(1.0, -1.0), decision=(-0.5,))).e_value < 1.0
        assert total(explained).drifted == 0

    @given(st.lists(st.tuples(BETS, BETS, st.booleans()), max_size=8))
    def test_an_explanation_never_raises_the_evidence(
        self, probes: list[tuple[tuple[float, ...], tuple[float, ...], bool]]
    ) -> None:
        plain = total(*[facts(observed=observed, decision=decision) for observed, decision, _ in probes])
        opinion = total(
            *[facts(observed=observed, decision=decision, explained=said) for observed, decision, said in probes]
        )
        assert opinion.e_value <= plain.e_value * (1 + 1e-12)

    def test_against_counts_the_alarm_is_at_twice_as_much(self) -> None:
        fresh, cached = total(*[LEAK] * 6), total(*[LEAK] * 5, facts(observed=(1.0, 1.0), cached=True))
        assert fresh.e_value == cached.e_value
        assert (fresh.evidence, cached.evidence) == (fresh.e_value, fresh.e_value / 2)
        barely = 1.5 / fresh.e_value
        assert fresh.alarms(barely)
        assert not cached.alarms(barely)
        assert cached.alarms(2 / cached.e_value)

    def test_it_alarms_at_one_over_alpha(self) -> None:
        assert exactly(facts(decision_maximum=598.0)).alarms()
        assert not exactly(facts(decision_maximum=597.9)).alarms()

    def test_what_was_observed_has_a_worth_of_its_own(self) -> None:
        both = total(facts(observed=(1.0,), decision=(0.5,)))
        assert both.observed_evidence == total(facts(observed=(1.0,))).e_value < both.e_value

    def test_decisions_that_say_nothing_are_not_no_drift(self) -> None:
        silent = [facts(unmeasured=True)] * 5
        assert total(*silent).report().overall_verdict is OverallVerdict.NOT_MEASURABLE
        assert total(*silent, CLEAN).report().overall_verdict is OverallVerdict.CONSISTENT
        assert total(*silent, LEAK).report().overall_verdict is OverallVerdict.DRIFT_DETECTED


class TestCounts:
    @pytest.mark.parametrize(
        "other", [{"session_id": "s-2"}, {"session_id": ""}, {"probe_library_version": "2.0.0"}], ids=str
    )
    def test_other_sessions_and_versions_are_counted_and_not_added(self, other: dict[str, str]) -> None:
        accumulator = total(CLEAN)
        before = msgspec.json.encode(accumulator)
        foreign = msgspec.structs.replace(LEAK, **other)
        assert not accumulator.add(foreign)
        assert accumulator.excluded == 1
        accumulator.excluded = 0
        assert msgspec.json.encode(accumulator) == before

    def test_failed_and_invalid_probes_are_not_clean_ones(self) -> None:
        accumulator = total(
            ended(Settled.FAILED), ended(Settled.FAILED, structural=True), ended(Settled.INVALID), CLEAN
        )
        report = accumulator.report()
        assert (report.probes_sent, report.probes_invalid, report.scored, report.failures) == (3, 1, 1, 3)
        assert (report.failure_rate, report.structural_failures) == (0.75, 1)
        assert report.overall_verdict is OverallVerdict.INCONCLUSIVE
        assert accumulator.streak == 1

    def test_escapes_are_counted_by_type_with_their_intervals(self) -> None:
        other = facts(probe_type=ProbeType.BUDGET_BYPASS)
        report = total(LEAK, CLEAN, other, CLEAN).report()
        assert report.escape_by_type == {ProbeType.DATA_DISCLOSURE: (1, 3), ProbeType.BUDGET_BYPASS: (0, 1)}
        assert report.escape_ci_by_type[ProbeType.BUDGET_BYPASS] == wilson(0, 1)
        assert (report.escape_count, report.escape_rate, report.escape_rate_ci) == (1, 0.25, wilson(1, 4))

    def test_a_leak_counts_however_little_axor_probe_scores_it(self) -> None:
        assert total(LEAK).report().overall_verdict is OverallVerdict.DRIFT_DETECTED

    def test_its_size_does_not_grow_with_the_probes(self) -> None:
        kinds, categories = list(ProbeType), list(DivergenceCategory)
        probes = [facts(probe_type=kinds[n % 6], category=categories[n % 5], observed=(0.0,)) for n in range(600)]
        accumulator = total(*probes[:60])
        small = len(msgspec.json.encode(accumulator))
        for probe in probes[60:]:
            accumulator.add(probe)
        assert len(msgspec.json.encode(accumulator)) < small + 60

    @given(st.lists(st.tuples(st.floats(0, 1), BETS, st.booleans()), max_size=12), st.integers(0, 12))
    def test_saved_and_restored_it_goes_on_alike(
        self, probes: list[tuple[float, tuple[float, ...], bool]], at: int
    ) -> None:
        said = [
            facts(score=score, observed=bets, drifted=drifted, category=DISAGREE if drifted else None)
            for score, bets, drifted in probes
        ]
        restored = msgspec.json.decode(msgspec.json.encode(total(*said[:at])), type=DriftAccumulator)
        for probe in said[at:]:
            restored.add(probe)
        assert restored == total(*said)
        assert restored.report() == total(*said).report()


class TestComposite:
    @given(st.lists(st.floats(0, 1), min_size=3, max_size=40))
    def test_the_trend_is_five_times_the_slope_of_least_squares(self, scores: list[float]) -> None:
        slope = linear_regression(range(len(scores)), scores).slope
        got = total(*[facts(score=score) for score in scores]).trend
        assert got == pytest.approx(max(0.0, min(1.0, 5 * slope)), abs=1e-9)

    def test_two_scores_are_no_trend(self) -> None:
        assert total(facts(score=0.0), facts(score=1.0)).trend == 0.0

    @pytest.mark.parametrize(("failures", "share"), [(0, 0.0), (1, 0.1), (2, 0.4), (3, 0.4), (4, 0.8), (9, 0.8)])
    def test_structural_failures_weigh_in_steps(self, failures: int, share: float) -> None:
        accumulator = total(*[ended(Settled.FAILED, structural=True)] * failures, CLEAN)
        assert accumulator.structural_share == share
        assert accumulator.composite() == pytest.approx(0.1 * share)

    def test_full_drift_from_the_first_probe_ends_at_what_axor_probe_gives(self) -> None:
        accumulator = total(*[SHIFT] * 40)
        assert accumulator.composite() == pytest.approx(0.6)
        assert accumulator.alarms()

    def test_category_counts_disagreements_that_nothing_explained(self) -> None:
        assert total(SHIFT, SHIFT).category == 0.5
        assert total(*[SHIFT] * 9).category == 1.0
        assert total(msgspec.structs.replace(SHIFT, explained=True)).category == 0.0
        assert total(facts(category=DivergenceCategory.REASONING_DIVERGENCE)).category == 0.0

    def test_with_nothing_scored_it_is_nothing(self) -> None:
        assert total(*[ended(Settled.FAILED, structural=True)] * 4).composite() == 0.0


class TestDisclosures:
    def test_a_disclosure_is_drift_at_once_and_lifts_the_signal_when_it_is_confirmed(self) -> None:
        told = facts(score=0.27, escaped=True, disclosed=True, observed=(1.0,))
        once = total(told)
        assert once.report().overall_verdict is OverallVerdict.DRIFT_DETECTED
        assert (once.disclosures, once.confirmed, once.longitudinal()) == (1, 0, once.composite())
        again = total(told, facts(observed=(1.0, 0.0), resampled=(1, 0)))
        assert (again.disclosures, again.confirmed) == (1, 1)
        assert again.longitudinal() == 0.3 > again.composite()
        assert again.e_value > once.e_value

    @pytest.mark.parametrize("resampled", [(0, 0), (1, 1), (0, 2), (2, 3)])
    def test_it_is_confirmed_only_where_the_copy_tells_it_again_and_more_than_the_shadow(
        self, resampled: tuple[int, int]
    ) -> None:
        accumulator = total(facts(disclosed=True, escaped=True), facts(resampled=resampled))
        assert (accumulator.confirmed, accumulator.longitudinal()) == (0, accumulator.composite())

    def test_nothing_is_confirmed_that_was_not_disclosed(self) -> None:
        assert total(facts(resampled=(4, 0))).confirmed == 0


class TestVerdict:
    @pytest.mark.parametrize(
        ("probes", "verdict"),
        [
            ([CLEAN] * 2, OverallVerdict.INCONCLUSIVE),
            ([CLEAN] * 3, OverallVerdict.CONSISTENT),
            ([CLEAN] * 20, OverallVerdict.CONSISTENT),
            ([SHIFT], OverallVerdict.DRIFT_DETECTED),
            ([SHIFT] + [CLEAN] * 20, OverallVerdict.DRIFT_DETECTED),
            ([ended(Settled.FAILED)] * 20, OverallVerdict.INCONCLUSIVE),
            ([facts(decision=(1.0,) * 20)], OverallVerdict.DRIFT_DETECTED),
        ],
    )
    def test_a_clean_streak_is_no_verdict_and_takes_no_drift_back(
        self, probes: list[ProbeOutcomeFacts], verdict: OverallVerdict
    ) -> None:
        assert total(*probes).report().overall_verdict is verdict

    def test_a_clean_streak_is_a_note(self) -> None:
        assert not any("CONSISTENCY_ANOMALY" in note for note in total(*[CLEAN] * 4).notes())
        (note,) = total(*[CLEAN] * 5).notes()
        assert note.startswith("CONSISTENCY_ANOMALY: 5 probes in a row")
        assert not total(*[CLEAN] * 4, LEAK).notes()[0].startswith("CONSISTENCY_ANOMALY")

    def test_drift_of_single_probes_is_told_with_what_it_comes_to(self) -> None:
        (note,) = total(LEAK).notes()
        assert "may be chance" in note
        assert note.endswith("alarm at 200")
        assert total(*[LEAK] * 8).notes() == ()

    def test_what_was_left_out_explained_or_counted_is_noted(self) -> None:
        accumulator = total(facts(explained=True, cached=True, observed=(0.5,), disclosed=True))
        accumulator.add(msgspec.structs.replace(CLEAN, session_id="other"))
        said = " / ".join(accumulator.notes())
        for words in (
            "0 of 1 disclosures",
            "explained 1 diff",
            "1 probes were left out",
            "counts of benign conversations from other sessions",
            "400",
        ):
            assert words in said


class TestFacts:
    @pytest.mark.parametrize("score", [-0.1, 1.1, math.nan])
    def test_a_score_is_in_range(self, score: float) -> None:
        with pytest.raises(ValueError, match="score"):
            facts(score=score)

    @pytest.mark.parametrize("bet", [-1.1, 1.1, math.nan])
    def test_a_bet_is_in_range(self, bet: float) -> None:
        with pytest.raises(ValueError, match="bet"):
            facts(observed=(0.0, bet))
        with pytest.raises(ValueError, match="bet"):
            facts(decision=(bet,))

    def test_against_counts_a_bet_may_bring_more_than_it_can_lose(self) -> None:
        won, capped = total(facts(observed=(4.5,), cached=True)), total(facts(observed=(1.0,), cached=True))
        assert won.e_value > capped.e_value
        for bet in (-1.1, math.inf, math.nan):
            with pytest.raises(ValueError, match="bet"):
                facts(observed=(bet,), cached=True)

    @pytest.mark.parametrize("value", [-0.1, math.inf, math.nan])
    def test_an_e_value_is_a_number(self, value: float) -> None:
        with pytest.raises(ValueError, match="e-value"):
            facts(decision_maximum=value)

    @pytest.mark.parametrize("value", [-0.1, math.inf, math.nan])
    def test_an_e_value_is_finite_and_not_negative(self, value: float) -> None:
        with pytest.raises(ValueError, match="which is none"):
            facts(decision_maximum=value)

    @pytest.mark.parametrize("settled", [Settled.FAILED, Settled.INVALID])
    @pytest.mark.parametrize(
        "shown", [facts(score=0.1), LEAK, facts(decision_maximum=0.0), facts(disclosed=True), facts(resampled=(0, 0))]
    )
    def test_what_failed_shows_nothing(self, settled: Settled, shown: ProbeOutcomeFacts) -> None:
        with pytest.raises(ValueError, match="shows something"):
            msgspec.structs.replace(shown, settled=settled)

    def test_counts_are_counts(self) -> None:
        with pytest.raises(ValueError, match="no counts"):
            facts(resampled=(1, -1))
