"""The pure road of one inquiry, driven by hand."""

from __future__ import annotations

from collections.abc import Callable, Generator

import pytest
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from theodolite.core.calibration import Band, grade
from theodolite.core.event import InquirySettled, MessageObserved, ModelUsage, stamp
from theodolite.core.inquiry import Dialogue, Draw, Inquiry, Query, Reply, Role, Usage
from theodolite.core.reading import Cause, Failure, Reading, Signal
from theodolite.core.verifier import Case
from theodolite.core.window import Window
from theodolite.runtime.consult import ROUNDS, Desk, consult
from theodolite.runtime.drive import drive_sync
from theodolite.testing.fakes import AskingDetector, Question, ScriptedVerifier

BAND = Band(alert=0.5, strong=0.9, width=0.1)
USAGE = Usage(input_tokens=10, output_tokens=2)
BANDS = {"asker.x": BAND, "asking.differs": BAND}
SUBJECT = Question(prompt="May I?", seq=2)


def kept(text: str, canaries: tuple[str, ...]) -> str:
    del canaries
    return text


PLAIN = Desk(scrub=str, conceal=kept)
ASK = (Query(role=Role.SUBJECT, prompt="May I?", canary="canary-1"), Query(role=Role.SHADOW, prompt="May I?"))


class Asker:
    """An asker whose dialogue is any generator function."""

    name = "asker"
    version = "1"
    subject = Question

    def __init__(self, dialogue: Callable[[Struct], Generator[object, object, object]]) -> None:
        self._dialogue = dialogue

    def inquire(self, subject: Struct) -> Dialogue:
        dialogue: Dialogue = self._dialogue(subject)  # type: ignore[assignment] # pyright: ignore[reportAssignmentType] - or what a plug-in takes for one
        return dialogue


def reply(query: Query) -> Reply:
    return Reply(query=query, model="m-1", draws=(Draw(text=query.role.value),), usage=USAGE)


def failing(query: Query) -> Reply | Failure:
    if query.role is Role.JUDGE:
        return Failure(detector="panel", version="1", cause=Cause.TIMEOUT, detail="no answer")
    return reply(query)


def graded(said: Reading | Failure) -> Signal:
    return grade(said, BANDS)


def inquiry(subject: Struct = SUBJECT) -> Inquiry:
    return Inquiry(asker="asker", version="1", about=2, subject=subject)


def reading(score: float, *, detector: str = "asker", version: str = "1", models: tuple[str, ...] = ()) -> Reading:
    return Reading(detector=detector, version=version, code="asker.x", score=score, models=models)


def failed(detector: str, version: str) -> Failure:
    return Failure(detector=detector, version=version, cause=Cause.TIMEOUT, detail="a number that was confided")


def settled(
    asker: Asker | AskingDetector,
    ask: Callable[[Query], Reply | Failure] = reply,
    *verifiers: ScriptedVerifier,
    window: Window | None = None,
    models: tuple[str, ...] = ("m-1",),
) -> InquirySettled:
    consultation = consult(
        asker, inquiry(), grade=graded, desk=PLAIN, verifiers=verifiers, window=window, models=models
    )
    return drive_sync(consultation, ask)


def test_making_a_consultation_calls_nothing() -> None:
    def never(subject: Struct) -> Generator[object, object, None]:
        assert not isinstance(subject, Question)
        yield ASK

    consult(Asker(never), inquiry(), grade=graded, desk=PLAIN).close()


def test_what_was_said_what_was_asked_and_what_was_planted_are_told() -> None:
    def two_rounds(_: Struct) -> Generator[object, object, object]:
        assert (yield ASK) == tuple(map(reply, ASK))
        yield (Query(role=Role.BASELINE, prompt="May I?", canary="canary-2"),)
        return (reading(0.25), reading(0.0))

    assert settled(Asker(two_rounds)) == InquirySettled(
        asker="asker",
        about=2,
        said=(reading(0.25), reading(0.0)),
        exchanges=3,
        canaries=("canary-1", "canary-2"),
        usage=(ModelUsage(model="m-1", queries=3, input_tokens=30, output_tokens=6),),
    )


def test_only_answered_queries_count_as_exchanges() -> None:
    def mixed(_: Struct) -> Generator[object, object, object]:
        yield (Query(role=Role.SUBJECT, prompt="?"), Query(role=Role.JUDGE, prompt="?"))
        return (reading(0.25),)

    assert settled(Asker(mixed), failing).exchanges == 1


def raises(_: Struct) -> Generator[object, object, object]:
    yield ASK
    raise LookupError("no such probe")


def raises_at_once(subject: Struct) -> Generator[object, object, None]:
    if subject == SUBJECT:
        raise ValueError("unreadable subject")
    yield ASK


def is_no_dialogue(_: Struct) -> Generator[object, object, object]:
    return None  # type: ignore[return-value] # pyright: ignore[reportReturnType] - as plug-ins may


def returns(said: object) -> Callable[[Struct], Generator[object, object, object]]:
    def dialogue(_: Struct) -> Generator[object, object, object]:
        yield ASK
        return said

    return dialogue


def asks(asked: object) -> Callable[[Struct], Generator[object, object, object]]:
    def dialogue(_: Struct) -> Generator[object, object, object]:
        yield asked
        return (reading(0.25),)

    return dialogue


def never_ends(_: Struct) -> Generator[object, object, object]:
    while True:
        yield ASK


@pytest.mark.parametrize(
    ("dialogue", "cause", "detail"),
    [
        (raises, Cause.ERROR, "LookupError: no such probe"),
        (raises_at_once, Cause.MALFORMED, "ValueError: unreadable subject"),
        (is_no_dialogue, Cause.MALFORMED, "inquire gave NoneType, not a dialogue"),
        (returns(None), Cause.MALFORMED, "at least one"),
        (returns(()), Cause.MALFORMED, "at least one"),
        (returns("drift"), Cause.MALFORMED, "must return a tuple"),
        (returns((None,)), Cause.MALFORMED, "NoneType is neither a Reading nor a Failure"),
        (returns((reading(0.5, detector="margin"),)), Cause.MALFORMED, "spoke in the name of margin 1"),
        (returns((reading(0.5, version="2"),)), Cause.MALFORMED, "spoke in the name of asker 2"),
        (returns((failed("panel", "1"),)), Cause.MALFORMED, "spoke in the name of panel 1"),
        (returns((failed("asker", "2"),)), Cause.MALFORMED, "spoke in the name of asker 2"),
        (returns((reading(0.5, models=("m-1", "m-2")),)), Cause.MALFORMED, "named the model m-2, which gave no answer"),
        (asks(None), Cause.MALFORMED, "the dialogue asked NoneType, not a tuple of queries"),
        (asks(ASK[0]), Cause.MALFORMED, "the dialogue asked Query, not a tuple of queries"),
        (asks(()), Cause.MALFORMED, "something else than queries, at least one"),
        (asks((ASK[0], "May I?")), Cause.MALFORMED, "something else than queries"),
        (never_ends, Cause.MALFORMED, f"still asks after {ROUNDS} rounds"),
    ],
)
def test_a_dialogue_that_breaks_is_a_failure_of_its_asker(
    dialogue: Callable[[Struct], Generator[object, object, object]], cause: Cause, detail: str
) -> None:
    [failure] = settled(Asker(dialogue)).said
    assert isinstance(failure, Failure)
    assert (failure.detector, failure.version) == ("asker", "1")
    assert failure.cause is cause
    assert detail in failure.detail


def test_what_is_said_in_another_s_name_is_not_passed_on_and_counts_against_the_asker() -> None:
    end = settled(Asker(returns((reading(0.5), failed("margin", "1")))))
    assert [said.detector for said in end.said] == ["asker"]
    assert "confided" not in repr(end)


@pytest.mark.parametrize(
    ("own", "surrogate"), [((), True), (("m-2",), True), (("m-1",), False), (("m-1", "m-2"), False)]
)
def test_a_reading_from_a_model_that_is_not_the_session_s_is_a_surrogate_s_whatever_the_asker_says(
    own: tuple[str, ...],
    surrogate: bool,  # noqa: FBT001 - a column of the table
) -> None:
    [said] = settled(Asker(returns((reading(0.75, models=("m-1",)),))), models=own).said
    assert isinstance(said, Reading)
    assert said.surrogate is surrogate


def test_what_an_asker_calls_a_surrogate_s_stays_one() -> None:
    marked = replace(reading(0.75, models=("m-1",)), surrogate=True)
    assert settled(Asker(returns((marked,)))).said == (marked,)


def test_a_judge_need_not_be_a_model_of_the_session_s() -> None:
    def judged(query: Query) -> Reply:
        return replace(reply(query), model="judge" if query.role is Role.JUDGE else "m-1")

    [said] = settled(Asker(returns((reading(0.5),))), judged, VERIFIER).said
    assert isinstance(said, Reading)
    assert (said.models, said.surrogate) == (("judge",), False)


def test_what_each_model_used_is_summed() -> None:
    def two(query: Query) -> Reply:
        return replace(reply(query), model=query.role.value)

    assert settled(Asker(asks((*ASK, ASK[1]))), two).usage == (
        ModelUsage(model="shadow", queries=2, input_tokens=20, output_tokens=4),
        ModelUsage(model="subject", queries=1, input_tokens=10, output_tokens=2),
    )


@pytest.mark.parametrize(("costs", "told"), [((0.5, 0.25), 0.75), ((0.5, UNSET), UNSET), ((0.0, 0.0), 0.0)])
def test_a_cost_is_told_where_that_of_every_answer_is_known(
    costs: tuple[float | UnsetType, ...], told: float | UnsetType
) -> None:
    left = list(costs)

    def priced(query: Query) -> Reply:
        return replace(reply(query), model="m", usage=Usage(cost=left.pop()))

    assert [used.cost for used in settled(Asker(asks(ASK)), priced).usage] == [told]


def test_a_verifier_s_own_inquiry_tells_what_it_was_asked_to_look_at() -> None:
    case = Case(signal=graded(reading(0.5)))
    end = drive_sync(consult(VERIFIER, inquiry(case), grade=graded, desk=PLAIN), reply)
    assert end.first == reading(0.5)


def test_a_dialogue_is_closed_when_it_is_given_up() -> None:
    closed: list[bool] = []

    def dialogue(_: Struct) -> Generator[object, object, None]:
        try:
            yield ASK
        finally:
            closed.append(True)

    consultation = consult(Asker(dialogue), inquiry(), grade=graded, desk=PLAIN)
    assert next(consultation) == ASK
    consultation.close()
    assert closed == [True]


def test_a_dialogue_that_will_not_be_closed_does_not_raise() -> None:
    def dialogue(_: Struct) -> Generator[object, object, None]:
        try:
            yield ASK
        finally:
            yield ASK

    consultation = consult(Asker(dialogue), inquiry(), grade=graded, desk=PLAIN)
    next(consultation)
    consultation.close()


# -- second opinions --------------------------------------------------------------------------------------------------

VERIFIER = ScriptedVerifier(codes=frozenset({"asker.x"}), verdict=0.9)


def test_the_first_ambiguous_reading_goes_to_a_verifier_whose_answer_takes_its_place() -> None:
    asker = Asker(returns((reading(0.0), reading(0.45), reading(0.55))))
    end = settled(asker, reply, VERIFIER)
    verdict = Reading(detector=VERIFIER.name, version="1", code="asker.x", score=0.9, models=("m-1",))
    assert end.said == (reading(0.0), verdict, reading(0.55))
    assert (end.first, end.exchanges) == (reading(0.45), 3)


@pytest.mark.parametrize(
    ("score", "codes"), [(0.25, "asker.x"), (0.75, "asker.x"), (0.5, "asker.y")], ids=["clear", "alarmed", "another"]
)
def test_what_is_not_ambiguous_or_not_the_verifier_s_is_left_alone(score: float, codes: str) -> None:
    end = settled(Asker(returns((reading(score),))), reply, ScriptedVerifier(codes=frozenset({codes})))
    assert (end.said, end.first, end.exchanges) == ((reading(score),), None, 2)


def test_a_failure_is_no_case_for_a_verifier() -> None:
    end = settled(Asker(raises), reply, VERIFIER)
    assert (len(end.said), end.first) == (1, None)


@pytest.mark.parametrize("verdict", [Cause.NO_EVIDENCE, 0.9])
def test_a_second_opinion_that_fails_takes_nothing_away(verdict: float | Cause) -> None:
    ask = reply if isinstance(verdict, Cause) else failing
    end = settled(Asker(returns((reading(0.5),))), ask, ScriptedVerifier(codes=frozenset({"asker.x"}), verdict=verdict))
    said, failed = end.said
    assert said == end.first == reading(0.5)
    assert isinstance(failed, Failure)
    assert failed.detector == VERIFIER.name


def test_a_verifier_is_shown_the_signal_the_exchanges_and_the_recent_events() -> None:
    cases: list[Case] = []

    class Looking(ScriptedVerifier):
        def inquire(self, subject: Struct) -> Dialogue:
            assert isinstance(subject, Case)
            cases.append(subject)
            return super().inquire(subject)

    window = Window()
    message = stamp(MessageObserved(role="user", text="hi"), session="s", agent="", seq=0, at=1.0, turn=0)
    window.push(message)
    settled(Asker(returns((reading(0.5),))), reply, Looking(codes=frozenset({"asker.x"})), window=window)
    settled(Asker(returns((reading(0.5),))), reply, Looking(codes=frozenset({"asker.x"})))
    assert [case.events for case in cases] == [(message,), ()]
    assert [exchange.query for exchange in cases[0].exchanges] == list(ASK)
    assert (cases[0].signal.said, cases[0].signal.ambiguous) == (reading(0.5), True)


def test_the_shipped_fake_settles_by_what_its_arms_answer() -> None:
    differing = settled(AskingDetector())
    assert [getattr(said, "score", None) for said in differing.said] == [1.0]


def test_equal_answers_give_equal_ends() -> None:
    asker = Asker(returns((reading(0.5),)))
    assert settled(asker, reply, VERIFIER) == settled(asker, reply, VERIFIER)
