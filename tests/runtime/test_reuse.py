"""What need not be asked again, and what must be."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping

import pytest
from msgspec import Struct
from msgspec.structs import replace

from theodolite.core.calibration import Band
from theodolite.core.calibration import grade as graded
from theodolite.core.inquiry import Dialogue, Draw, Inquiry, Message, Query, Reply, Role
from theodolite.core.reading import Fact, Failure, Reading, Signal
from theodolite.core.snapshot import StateSnapshot
from theodolite.detectors.behavior.arms import ProbeCase
from theodolite.detectors.behavior.detector import BehaviorDetector, BehaviorSettings
from theodolite.detectors.behavior.library import shipped
from theodolite.runtime.consult import Desk, consult
from theodolite.runtime.drive import drive_sync
from theodolite.runtime.reuse import ENOUGH, Reuse

BANDS = {"asker.x": Band(alert=0.5, source="a test")}


def choice(prompt: str = "Which?") -> Query:
    return Query(role=Role.SUBJECT, prompt=prompt, options=("a", "b"))


def exact(query: Query) -> Reply:
    return Reply(query=query, model="m-1", choice=(("a", 0.25), ("b", 0.75)), exact=True)


def drawn(query: Query, *texts: str) -> Reply:
    return Reply(query=query, model="m-1", draws=tuple([Draw(text=text) for text in texts]))


def tally(reply: Reply) -> dict[str, int]:
    return {"yes": sum(draw.text == "yes" for draw in reply.draws)}


class TestDistributions:
    def test_one_is_known_for_the_same_question_in_any_role_with_any_canary(self) -> None:
        reuse = Reuse()
        assert reuse.known(choice(), "m") is None
        reuse.learn(exact(replace(choice(), canary="TH-1", samples=4)), "m", None)
        known = reuse.known(replace(choice(), canary="TH-2"), "m")
        assert known is not None
        assert (known.choice, known.reused, known.query.canary) == ((("a", 0.25), ("b", 0.75)), True, "TH-2")
        assert (reuse.hits, reuse.misses) == (1, 1)

    @pytest.mark.parametrize(
        "other",
        [
            choice("Which one?"),
            replace(choice(), system="Be good."),
            replace(choice(), context=(Message("user", "Hello."),)),
            Query(role=Role.SUBJECT, prompt="Which?", options=("b", "a")),
        ],
    )
    def test_another_question_is_not(self, other: Query) -> None:
        reuse = Reuse()
        reuse.learn(exact(choice()), "m", None)
        assert reuse.known(other, "m") is None
        assert reuse.known(choice(), "another model") is None

    def test_how_often_an_option_was_drawn_is_no_distribution(self) -> None:
        reuse = Reuse()
        reuse.learn(replace(exact(choice()), exact=False), "m", None)
        assert reuse.known(choice(), "m") is None

    def test_the_oldest_goes_when_there_is_no_room(self) -> None:
        reuse = Reuse(most=2)
        for number in range(3):
            reuse.learn(exact(choice(f"Which {number}?")), "m", None)
        assert [reuse.known(choice(f"Which {number}?"), "m") is None for number in range(3)] == [True, False, False]


class TestCounts:
    ASKED = Query(role=Role.SHADOW, prompt="Well?", reuse="t-1")

    def test_they_answer_once_there_are_enough_and_are_then_closed(self) -> None:
        reuse = Reuse(enough=3)
        reuse.learn(drawn(self.ASKED, "yes", "no"), "m", tally)
        assert reuse.known(self.ASKED, "m") is None
        reuse.learn(drawn(self.ASKED, "yes"), "m", tally)
        known = reuse.known(self.ASKED, "m")
        assert known is not None
        assert known.counts == (("draws", 3), ("yes", 2))
        assert known.draws == ()
        reuse.learn(drawn(self.ASKED, "yes", "yes"), "m", tally)  # one that was under way meanwhile
        assert reuse.known(self.ASKED, "m") == known

    def test_a_draw_is_never_used_twice(self) -> None:
        reuse = Reuse(enough=1)
        plain = Query(role=Role.SHADOW, prompt="Well?")
        reuse.learn(drawn(plain, "yes"), "m", tally)
        assert reuse.known(plain, "m") is None
        assert (reuse.hits, reuse.misses) == (0, 0)

    def test_who_cannot_count_is_asked_again(self) -> None:
        reuse = Reuse(enough=1)
        reuse.learn(drawn(self.ASKED, "yes"), "m", None)
        assert reuse.known(self.ASKED, "m") is None


class Nothing(Struct, frozen=True):
    """What it is asked about."""


class Asker:
    """Asks the same two questions each time; it says how many draws said yes."""

    name, version, subject = "asker", "1", Nothing

    def inquire(self, subject: Struct) -> Dialogue:
        del subject
        return self._dialogue()

    def _dialogue(self) -> Generator[tuple[Query, ...], tuple[Reply | Failure, ...], tuple[Reading | Failure, ...]]:
        queries = (choice(), Query(role=Role.SHADOW, prompt="Well?", reuse="t-1"))
        exactly, counted = yield queries
        assert isinstance(exactly, Reply)
        assert isinstance(counted, Reply)
        assert exactly.query == queries[0]
        facts = (Fact("reused", float(exactly.reused)), Fact("counted", float(len(counted.counts))))
        return (Reading(detector="asker", version="1", code="asker.x", score=0.1, models=("m-1",), facts=facts),)

    def tally(self, reply: Reply) -> Mapping[str, int]:
        return tally(reply)


def grade(said: Reading | Failure) -> Signal:
    return graded(said, BANDS)


def plain(text: str) -> str:
    return text


def kept(text: str, canaries: tuple[str, ...]) -> str:
    del canaries
    return text


def asked_with(desk: Desk) -> tuple[list[str], Reading, int, int]:
    put: list[str] = []

    def ask(query: Query) -> Reply:
        put.append(query.prompt)
        return exact(query) if query.options else drawn(query, "yes")

    inquiry = Inquiry(asker="asker", version="1", about=0, subject=Nothing())
    settled = drive_sync(consult(Asker(), inquiry, grade=grade, models=("m-1",), desk=desk), ask)
    (said,) = settled.said
    assert isinstance(said, Reading)
    assert settled.usage == () or settled.usage[0].queries == settled.exchanges
    return put, said, settled.exchanges, settled.reused


def test_a_consultation_puts_what_is_not_known_and_says_how_much_was() -> None:
    desk = Desk(plain, kept, Reuse(enough=2), {Role.SUBJECT: "m", Role.SHADOW: "m"})
    assert asked_with(desk)[0] == ["Which?", "Well?"]
    put, said, exchanges, reused = asked_with(desk)
    assert (put, exchanges, reused) == (["Well?"], 1, 1)
    assert said.fact("reused") == 1.0
    put, said, exchanges, reused = asked_with(desk)
    assert (put, exchanges, reused) == ([], 0, 2)
    assert said.fact("counted") == 2.0
    assert not said.surrogate


def test_without_what_is_known_everything_is_asked_each_time() -> None:
    assert asked_with(Desk(plain, kept))[0] == asked_with(Desk(plain, kept))[0] == ["Which?", "Well?"]


def test_a_judge_is_shown_no_text_that_is_not_redacted() -> None:
    query = Query(role=Role.JUDGE, prompt="Compare.", context=(Message("user", "bob@example.org said"),))

    def scrub(text: str) -> str:
        return text.replace("bob@example.org", "[REDACTED]")

    desk = Desk(scrub, kept)
    assert desk.scrubbed(query).context == (Message("user", "[REDACTED] said"),)
    assert desk.scrubbed(query).prompt == "Compare."
    own = Query(role=Role.SUBJECT, prompt="Well?", context=(Message("user", "bob@example.org said"),))
    assert desk.scrubbed(own) is own


def test_draws_of_sessions_that_were_under_way_when_the_counts_closed_are_not_counted() -> None:
    """Whoever asked before the counts closed has draws of its own, in whatever order the answers come."""
    reuse = Reuse()
    desk = Desk(plain, kept, reuse, {Role.SUBJECT: "m", Role.SHADOW: "m"})
    well = Query(role=Role.SHADOW, prompt="Well?", reuse="t-1")
    reuse.learn(drawn(well, *["no"] * (ENOUGH - 1)), "m", tally)
    inquiry = Inquiry(asker="asker", version="1", about=0, subject=Nothing())
    roads = [consult(Asker(), inquiry, grade=grade, models=("m-1",), desk=desk) for _ in range(4)]
    asked = [next(road) for road in roads]
    assert all([query.prompt for query in queries] == ["Which?", "Well?"] for queries in asked)
    for road, queries, text in zip(reversed(roads), reversed(asked), ("no", "yes", "yes", "yes"), strict=True):
        with pytest.raises(StopIteration) as end:
            road.send((exact(queries[0]), drawn(queries[1], text)))
        assert end.value.value.said[0].fact("counted") == 0.0
    known = reuse.known(well, "m")
    assert known is not None
    assert known.counts == (("draws", ENOUGH), ("yes", 0))


def rounds(dialogue: Dialogue, answer: Callable[[Query], Reply]) -> list[tuple[Query, ...]]:
    """Return what was asked, round by round."""
    asked = [next(dialogue)]
    try:
        while True:
            asked.append(dialogue.send(tuple(map(answer, asked[-1]))))
    except StopIteration:
        return asked


@pytest.mark.parametrize("tells", [False, True], ids=["the same is asked again", "what was told is asked again"])
def test_of_a_probe_the_first_draws_alone_are_counted(*, tells: bool) -> None:
    """Whether there are more depends on what the first said: they would count what leads to them twice."""
    detector = BehaviorDetector(BehaviorSettings(reuse=True))
    (template, *_) = shipped().templates
    case = ProbeCase(
        about=0,
        trigger="manual",
        probe=shipped().fill(template, b"words", canary="TH-0123456789abcdef"),
        snapshot=StateSnapshot(session_id="s", timestamp=0.0, context_window=(Message("user", "Hello"),)),
    )
    told = {"decision": "decline", "reasoning": "I keep to it.", "policy_cited": True}
    told |= dict.fromkeys(("disclosed_data", "escalation_suggested", "tool_call_attempted"), False)

    def answer(query: Query) -> Reply:
        leaks = tells and query.role is Role.SUBJECT
        text = json.dumps(told | {"reasoning": query.canary} if leaks else told)
        return drawn(query, *[text] * query.samples)

    first, *others = rounds(detector.inquire(case), answer)
    counted = [query for query in first if query.reuse]
    assert [(query.role, query.samples) for query in counted] == [(Role.SHADOW, 1)] * 2
    assert len({query.reuse for query in counted}) == 2
    assert others
    assert not [query for queries in others for query in queries if query.reuse]
