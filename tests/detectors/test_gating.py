"""The gate passes a model that reads the policy, and says of any other why it cannot be measured."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence

import msgspec
import pytest
from msgspec.structs import replace
from tests.detectors.behavior_answers import COMPLIES, DECLINES

from theodolite.core.calibration import Calibration
from theodolite.core.errors import CalibrationError
from theodolite.core.gate import FEWEST_PAIRS, Gate, Reason, Shown
from theodolite.core.inquiry import Draw, Message, Query, Reply
from theodolite.core.reading import Cause, Failure
from theodolite.core.snapshot import StateSnapshot
from theodolite.detectors.behavior.arms import ProbeCase
from theodolite.detectors.behavior.detector import BehaviorDetector, BehaviorSettings
from theodolite.detectors.behavior.gating import Gating, Pair, Terms, gate, smallest_shift
from theodolite.detectors.behavior.library import shipped
from theodolite.detectors.behavior.readout import WORDINGS, Difference, difference, queries, read
from theodolite.detectors.behavior.references import Length, Reference, e_value, like, z
from theodolite.testing.fakes.policies import TAINT, TOPIC, Contract, PolicyModel

LIBRARY = shipped()
PAIRS = [Pair.of(probe, system="You are the assistant of a bank.") for probe in LIBRARY.probes]
TERMS = Terms(prompt_hash="ab" * 32, library=LIBRARY.version, version="1", date="2026-11-30")
SHORT = like(Length.SHORT)
Answer = Callable[[Query], Reply | Failure]


def held(gating: Gating, answer: Answer) -> Gate | Failure:
    """Answer every query of a gate, and return what it comes to."""
    try:
        asked = next(gating)
        while True:
            asked = gating.send(tuple([answer(query) for query in asked]))
    except StopIteration as stop:
        said: Gate | Failure = stop.value
        return said


def measured(answer: Answer, terms: Terms = TERMS, pairs: Sequence[Pair] = PAIRS) -> Gate:
    said = held(gate(pairs, terms), answer)
    assert isinstance(said, Gate), said
    return said


def model(**changes: object) -> PolicyModel:
    made = PolicyModel(templates=LIBRARY.templates, scatter=0.5)
    for name, value in changes.items():
        assert hasattr(made, name)
        setattr(made, name, value)
    return made


def test_a_model_that_reads_the_policy_passes() -> None:
    fake = model(policy=3.0, order=1.0)
    found = measured(fake.reply)
    assert (found.passed, found.reasons, found.shown) == (True, (), Shown.PROBABILITIES)
    assert (found.pairs, found.auc, found.decline_share, found.conform_share) == (23, 1.0, 1.0, 1.0)
    assert found.violation == pytest.approx(-3.0, abs=0.5)
    assert found.gap == pytest.approx(6.0, abs=0.7)
    assert 0.0 < found.spread < found.gap
    assert not found.order_rules
    assert (found.calls, fake.calls, fake.unknown) == (23 * 2 * 3, 23 * 2 * 3, 0)
    assert (found.samples, found.smallest_shift) == (0, None)
    assert (found.model, found.library, found.date) == ("policy-model", "1.0.0", "2026-11-30")
    assert found.wording == WORDINGS[0].id


@pytest.mark.parametrize(
    ("changes", "reasons"),
    [
        ({"policy": 0.2, "liking": -1.8}, (Reason.OVERLAP, Reason.GAP, Reason.ONE_SIDE)),
        ({"policy": 2.0, "liking": -4.0}, (Reason.ONE_SIDE,)),
        ({"policy": 2.0, "liking": 4.0}, (Reason.ONE_SIDE,)),
        ({"policy": 0.4, "scatter": 0.01}, (Reason.GAP,)),
        ({"policy": 0.8, "scatter": 2.5}, (Reason.OVERLAP,)),
        ({"policy": 3.0, "binds": False}, (Reason.FLAT, Reason.GAP, Reason.ONE_SIDE)),
        ({"policy": 0.0, "binds": False}, (Reason.FLAT, Reason.OVERLAP, Reason.GAP, Reason.ONE_SIDE)),
        ({"policy": 3.0, "binds": False, "order": 3.0}, (Reason.FLAT, Reason.GAP, Reason.ONE_SIDE)),
        ({"policy": -3.0}, (Reason.INVERTED,)),
    ],
)
def test_a_model_that_does_not_read_it_fails_for_the_right_reason(
    changes: dict[str, object], reasons: tuple[Reason, ...]
) -> None:
    found = measured(model(**changes).reply)
    assert (found.passed, found.reasons) == (False, reasons)


def test_a_gap_that_the_order_of_the_options_outdoes_is_told() -> None:
    found = measured(model(policy=0.6, order=2.0, scatter=0.1).reply)
    assert found.passed
    assert found.order_rules


@pytest.mark.parametrize("contract", ["text", "json", "vouched"])
def test_a_model_that_shows_no_probabilities_is_measured_by_draws(contract: Contract) -> None:
    found = measured(model(contract=contract).reply)
    assert (found.passed, found.shown) == (True, Shown.SAMPLES)
    assert (found.samples, found.wording) == (20, "")
    assert found.smallest_shift == pytest.approx(smallest_shift(20, 0.1) or 0.0)
    assert found.calls == 6 + 23 * 2  # the first pair had shown that there are none
    assert (found.spread, found.order_rules) == (0.0, False)
    unlike = measured(model(contract=contract, policy=0.1, liking=-1.5).reply)
    assert (unlike.passed, Reason.ONE_SIDE in unlike.reasons) == (False, True)
    flat = measured(model(contract=contract, binds=False).reply)
    assert flat.reasons[0] is Reason.FLAT


def test_what_is_drawn_is_asked_and_read_as_in_a_session() -> None:
    """How it chooses among options is beside the point: they stand in no session of a model without probabilities."""
    probes = {probe.scenario: probe for probe in LIBRARY.probes}
    asked: list[Query] = []
    fake = model(contract="json")

    def answer(query: Query) -> Reply:
        asked.append(query)
        return fake.reply(query)

    measured(answer)
    drawn = [query for query in asked if not query.options]
    assert len(drawn) == 23 * 2
    for query in drawn:
        [probe] = [one for text, one in probes.items() if text in _texts(query) or one.twin in _texts(query)]
        case = ProbeCase(
            about=0,
            trigger="manual",
            probe=replace(probe, canary=query.canary),
            snapshot=StateSnapshot(session_id="s", context_window=(Message("user", "Hello"),)),
            reference=(Message("user", "Fine day."),),
        )
        detector = BehaviorDetector(BehaviorSettings(system="You are the assistant of a bank."))
        in_session = [replace(one, role=query.role, samples=20) for one in detector.queries(case)]
        in_session = [
            replace(one, context=(one.context or ())[1:]) if one.context else one for one in in_session
        ]  # what is behind the question's own context goes
        assert query in in_session


def _texts(query: Query) -> str:
    return "\n".join([query.prompt, *[message.text for message in query.context or ()]])


@pytest.mark.parametrize("contract", ["text", "json"])
def test_who_chooses_well_and_acts_otherwise_does_not_pass(contract: Contract) -> None:
    chooses, acts = model(contract=contract), model(contract=contract, policy=0.0, liking=4.0)
    found = measured(lambda query: (chooses if query.options else acts).reply(query))
    assert (found.passed, found.shown) == (False, Shown.SAMPLES)
    assert {Reason.GAP, Reason.ONE_SIDE} <= set(found.reasons)
    assert found.violation > 0.0


def test_who_chooses_badly_and_acts_by_the_policy_passes() -> None:
    chooses, acts = model(contract="json", policy=0.0), model(contract="json")
    found = measured(lambda query: (chooses if query.options else acts).reply(query))
    assert (found.passed, found.shown) == (True, Shown.SAMPLES)


def test_an_answer_that_nobody_can_read_did_not_do_what_was_asked() -> None:
    """So a session reads it, too: a twin that is answered in riddles half of the time is done half of the time."""
    fake = model(contract="text", policy=8.0, scatter=0.0)

    def answer(query: Query) -> Reply:
        reply = fake.reply(query)
        told = [Draw(text="Well.") if place % 2 else draw for place, draw in enumerate(reply.draws)]
        return reply if query.options else replace(reply, draws=tuple(told))

    found = measured(answer)
    assert found.twin == pytest.approx(0.0, abs=0.1)
    assert found.violation == pytest.approx(math.log(0.5 / 20.5))
    assert (found.samples, found.reasons) == (10, (Reason.ONE_SIDE,))
    assert found.smallest_shift == pytest.approx(smallest_shift(10, 0.1) or 0.0)


@pytest.mark.parametrize(
    ("on_violations", "on_twins", "reasons", "shift"),
    [
        (COMPLIES, COMPLIES, (Reason.OVERLAP, Reason.GAP, Reason.ONE_SIDE), None),
        (DECLINES, DECLINES, (Reason.OVERLAP, Reason.GAP, Reason.ONE_SIDE), smallest_shift(20, 0.1)),
        (COMPLIES, DECLINES, (Reason.INVERTED,), None),
        (DECLINES, COMPLIES, (), smallest_shift(20, 0.1)),
    ],
    ids=["complies", "declines", "inverted", "sound"],
)
def test_a_model_whose_draws_are_all_alike_has_a_gate_whatever_they_are(
    on_violations: Mapping[str, object],
    on_twins: Mapping[str, object],
    reasons: tuple[Reason, ...],
    shift: float | None,
) -> None:
    """No rate rises from 1: of a model that carries out every violation no smallest shift is told."""
    twins = {probe.twin for probe in LIBRARY.probes}

    def answer(query: Query) -> Reply:
        texts = [query.prompt, *(message.text for message in query.context or ())]
        said = json.dumps(on_twins if any(twin in text for twin in twins for text in texts) else on_violations)
        return Reply(query=query, model="m-1", draws=(Draw(text=said),) * query.samples)

    def drawing(query: Query) -> Reply:
        return replace(answer(query), draws=(Draw(text=query.options[0]),)) if query.options else answer(query)

    found = measured(drawing)
    assert (found.reasons, found.passed, found.shown) == (reasons, not reasons, Shown.SAMPLES)
    assert (found.samples, found.smallest_shift) == (20, shift)


def test_a_model_that_names_no_option_cannot_be_measured() -> None:
    found = measured(lambda query: Reply(query=query, model="m-1", draws=(Draw(text="Well."),) * query.samples))
    assert found.reasons[0] is Reason.UNREAD
    assert not found.passed
    assert (found.auc, found.gap) == (0.5, 0.0)


def test_some_unread_answers_are_a_reason_even_where_the_rest_is_good() -> None:
    fake = model(contract="text")

    def answer(query: Query) -> Reply:
        reply = fake.reply(query)
        silent = query.prompt.startswith(LIBRARY.probes[5].scenario)
        return replace(reply, draws=(Draw(text="Well."),), choice=()) if silent else reply

    assert measured(answer).reasons == (Reason.UNREAD,)


def test_a_failed_query_decides_nothing_and_is_named() -> None:
    fake = model()
    failed = Failure(detector="m", version="2", cause=Cause.TIMEOUT, detail="no answer within 60 s")
    twin = LIBRARY.probes[7].twin

    def answer(query: Query) -> Reply | Failure:
        late = query.prompt.startswith(twin) and query.options[0] == WORDINGS[0].decline
        return failed if late else fake.reply(query)

    said = held(gate(PAIRS, TERMS), answer)
    name = f"twin of {LIBRARY.probes[7].probe_id}, order 2 of 3"
    detail = f"the gate is not decided: {name}: no answer within 60 s"
    assert said == replace(failed, detail=detail)


def test_a_choice_that_is_none_decides_nothing() -> None:
    said = held(gate(PAIRS, TERMS), lambda query: Reply(query=query, model="m-1", choice=(("obey", 1.0),)))
    assert isinstance(said, Failure)
    assert said.cause is Cause.MALFORMED
    assert "violation of" in said.detail


def test_two_models_are_not_measured_as_one() -> None:
    fakes = itertools.cycle([model(name="m-1"), model(name="m-2")])
    said = held(gate(PAIRS, TERMS), lambda query: next(fakes).reply(query))
    assert isinstance(said, Failure)
    assert "2 models" in said.detail


def test_too_few_pairs_and_contexts_with_leading_words_are_refused() -> None:
    fitting = measured(model().reply, pairs=PAIRS[:FEWEST_PAIRS])
    assert fitting.passed
    with pytest.raises(ValueError, match="at least 12 pairs, not 11"):
        gate(PAIRS[: FEWEST_PAIRS - 1], TERMS)
    leading = replace(SHORT[0], said=(Message("user", "Just say B."),))
    with pytest.raises(ValueError, match=SHORT[0].id):
        gate(PAIRS, TERMS, contexts={"short": [leading]})


def test_words_that_the_operators_prompt_holds_are_exchanged() -> None:
    pairs = [Pair.of(probe, system="Reject what is not allowed.") for probe in LIBRARY.probes]
    assert measured(model().reply, pairs=pairs).wording != WORDINGS[0].id
    assert measured(model().reply, replace(TERMS, wording=WORDINGS[3])).wording == WORDINGS[3].id


def test_all_six_orders_are_asked_when_wanted() -> None:
    assert measured(model().reply, replace(TERMS, every=True)).calls == 23 * 2 * 6


# What benign contexts do, and what a session does beside them.

MOVED = {"novelty": 2.0, "wobble": 0.4, "topics": ("sourdough", TOPIC)}


def references(fake: PolicyModel) -> Gate:
    said = held(gate(PAIRS, TERMS, contexts={"short": SHORT}), fake.reply)
    assert isinstance(said, Gate), said
    return said


def read_behind(fake: PolicyModel, context: tuple[Message, ...]) -> dict[str, Difference]:
    """Return the reading of each probe that has references, behind a context."""
    found: dict[str, Difference] = {}
    for pair in PAIRS:
        if pair.probe in CHOSEN:
            sides = [
                read(
                    [
                        fake.reply(query)
                        for query in queries(replace(asked, context=(*context, *(asked.context or ()))), WORDINGS[0])
                    ],
                    WORDINGS[0],
                )
                for asked in (pair.violation, pair.twin)
            ]
            found[pair.probe] = difference(*sides)
    return found


CHOSEN = [
    next(pair.probe for pair in PAIRS if pair.kind is kind) for kind in dict.fromkeys(pair.kind for pair in PAIRS)
]


def session(number: int, said: str) -> tuple[Message, ...]:
    """Return a context of like length that is no reference."""
    return (*SHORT[number].said[:-1], Message("assistant", f"{said} ({number})"))


def test_references_are_measured_on_the_first_probe_of_each_type() -> None:
    fake = model(**MOVED)
    found = references(fake)
    assert list(found.references) == ["short"]
    assert list(found.references["short"]) == CHOSEN
    assert {len(values) for values in found.references["short"].values()} == {40}
    assert found.calls == fake.calls == 23 * 6 + 40 * 6 * 6
    # Any context moves both by as much: what is left of it in the difference is what each does of its own.
    for probe, values in found.references["short"].items():
        empty = read_behind(fake, ())[probe].value
        assert sum(values) / 40 == pytest.approx(empty, abs=4 * 0.4 * math.sqrt(2 / 40))


def test_named_probes_are_measured_instead() -> None:
    said = held(gate(PAIRS, TERMS, contexts={"short": SHORT}, probes={"dd_02", "ip_03"}), model().reply)
    assert isinstance(said, Gate)
    assert set(said.references["short"]) == {"dd_02", "ip_03"}


@pytest.mark.parametrize("changes", [{"policy": 0.1}, {"contract": "text"}])
def test_none_are_measured_where_they_would_be_of_no_use(changes: dict[str, object]) -> None:
    assert references(model(**changes)).references == {}


def test_drift_shows_and_what_a_context_does_to_both_does_not() -> None:
    changes: dict[str, object] = {**MOVED, "drift": 4.0, "topic": -3.0}
    fake = model(**changes)
    clean = references(fake).references["short"]
    scores: dict[str, list[float]] = {}
    evidence: dict[str, list[float]] = {}
    for said in (TAINT, TOPIC, "ordinary"):
        for number in range(12):
            found = read_behind(fake, session(number, said))
            scores.setdefault(said, []).extend(z(one.value, clean[probe]) for probe, one in found.items())
            evidence.setdefault(said, []).append(e_value({probe: one.value for probe, one in found.items()}, clean))
    means = {said: sum(values) / len(values) for said, values in scores.items()}
    # 72 readings: four standard errors are 0.47. The drift of 4 is some seven standard deviations of the references.
    assert means[TAINT] > 5.0
    assert abs(means[TOPIC]) < 0.5
    assert abs(means["ordinary"]) < 0.5
    assert min(evidence[TAINT]) >= 20.0
    assert max(*evidence[TOPIC], *evidence["ordinary"]) < 20.0


def test_a_topic_that_moves_violations_alone_cannot_be_told_from_drift() -> None:
    """The limit of the method: references of that topic would be needed."""
    fake = model(**MOVED, topic=2.0, topic_spares_twins=True)
    clean = references(fake).references["short"]
    found = read_behind(fake, session(1, TOPIC))
    assert min(z(one.value, clean[probe]) for probe, one in found.items()) > 1.0


def test_a_context_behind_which_a_question_fails_is_left_out() -> None:
    fake = model(**MOVED)
    failed = Failure(detector="m", version="2", cause=Cause.ERROR, detail="gone")

    def failing(contexts: Sequence[Reference]) -> Answer:
        lost = {context.said[0] for context in contexts}
        return lambda query: failed if query.context and query.context[0] in lost else fake.reply(query)

    said = held(gate(PAIRS, TERMS, contexts={"short": SHORT}), failing(SHORT[:10]))
    assert isinstance(said, Gate)
    assert {len(values) for values in said.references["short"].values()} == {30}
    said = held(gate(PAIRS, TERMS, contexts={"short": SHORT}), failing(SHORT[:11]))
    assert isinstance(said, Failure)
    assert said.detail.startswith("29 benign contexts of length 'short' were measured, of at least 30: ")
    assert said.detail.endswith("gone")


# What is kept.


def test_a_gate_is_kept_in_an_artefact_under_its_model() -> None:
    found = references(model(**MOVED))
    document = {
        "schema": 1,
        "id": "x",
        "status": "REFERENCE",
        "alpha": 0.05,
        "date": "2026-11-30",
        "dataset": {"name": "none"},
        "versions": {},
        "bands": {},
        "gates": {found.model: found},
    }
    written = msgspec.json.encode(document)
    assert Calibration.load(written, "x.json").gates == {"policy-model": found}
    with pytest.raises(CalibrationError, match="keep it under its own model"):
        Calibration.load(msgspec.json.encode({**document, "gates": {"m-2": found}}), "x.json")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"pairs": 11}, "at least 12 pairs"),
        ({"passed": False}, "no reason against it"),
        ({"reasons": (Reason.GAP,)}, "no reason against it"),
        ({"auc": 1.1}, "between 0 and 1"),
        ({"conform_share": math.nan}, "between 0 and 1"),
        ({"twin": math.inf}, "finite"),
        ({"spread": -1.0}, "not negative"),
        ({"references": {"short": {}}}, "number none"),
        ({"references": {"short": {"dd_01": (0.0,) * 29}}}, "number 29"),
        ({"references": {"short": {"dd_01": (0.0,) * 30, "dd_02": (0.0,) * 31}}}, "number 30, 31"),
        ({"references": {"short": {"dd_01": (math.nan,) * 30}}}, "no number"),
    ],
)
def test_a_gate_that_cannot_be_is_refused(changes: dict[str, object], fault: str) -> None:
    found = measured(model().reply)
    with pytest.raises(ValueError, match=fault):
        replace(found, **changes)


def test_every_reason_has_words() -> None:
    assert all(reason.words.endswith(".") for reason in Reason)


# Figures.


def _chance(hits: int, draws: int, rate: float) -> float:
    """Return the chance of so many hits or more, by going through every sequence of draws."""
    return sum(
        math.prod(rate if hit else 1 - rate for hit in sequence)
        for sequence in itertools.product([False, True], repeat=draws)
        if sum(sequence) >= hits
    )


@pytest.mark.parametrize(("draws", "base"), [(6, 0.1), (10, 0.1), (10, 0.05), (12, 0.3)])
def test_the_smallest_shift_is_seen_as_often_as_it_should_and_a_smaller_one_is_not(draws: int, base: float) -> None:
    shift = smallest_shift(draws, base)
    assert shift is not None
    needed = next(hits for hits in range(draws + 1) if _chance(hits, draws, base) <= 0.05)
    assert _chance(needed, draws, base + shift) == pytest.approx(0.8)


def test_more_draws_show_less_and_twenty_show_a_fifth() -> None:
    found = [smallest_shift(draws, 0.1) or 1.0 for draws in (20, 100, 400)]
    assert found == pytest.approx([0.21, 0.09, 0.04], abs=0.01)
    assert smallest_shift(1, 0.1) is None
    for wrong in ((0, 0.1, 0.05), (20, 0.0, 0.05), (20, 0.1, 1.0)):
        draws, base, alpha = wrong
        with pytest.raises(ValueError, match="no shift"):
            smallest_shift(draws, base, alpha=alpha)
