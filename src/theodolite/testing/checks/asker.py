"""The laws of askers: detectors that open inquiries, and verifiers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeGuard

import msgspec
from msgspec import Raw, Struct

from theodolite.core.calibration import Band
from theodolite.core.detector import Asker
from theodolite.core.inquiry import Draw, Query, Reply, Role
from theodolite.core.reading import Cause, Failure, Level, Reading
from theodolite.core.verifier import Verifier
from theodolite.runtime.consult import ROUNDS
from theodolite.testing.checks.audit import touches
from theodolite.testing.checks.dialogue import Answerer, Conversation, alike, by_role, converse, maker
from theodolite.testing.checks.law import broken, run, unraised
from theodolite.testing.sessions import HOSTILE_TEXTS

__all__ = ("CHECKS", "AskerFixture", "check_asker")

_SEEDS = range(12)
_ARMS = frozenset({Role.SUBJECT, Role.SHADOW, Role.BASELINE})


@dataclass(frozen=True, kw_only=True)
class AskerFixture:
    """An asker under test.

    `factory` makes it with its default settings, a new one each time; `subjects` are some that it may be asked about.
    `bands` grade what it says (None: it has bands of its own). `alarming` answers its queries so that each of its codes
    alarms; generated answers, different for each role, are tried too.
    """

    factory: Callable[[], Asker]
    subjects: Sequence[Struct]
    bands: Mapping[str, Band] | None = None
    alarming: Sequence[Answerer] = ()

    def graded(self, asker: Asker) -> Mapping[str, Band]:
        """Return the bands that grade what the asker says."""
        return getattr(asker, "bands", {}) if self.bands is None else self.bands

    def again(self, subject: Struct, answer: str) -> str:
        """Return what a person does to see a dialogue again."""
        return f"converse(asker.inquire({subject!r}), {answer})"[:500]


def check_asker(
    factory: Callable[[], Asker],
    subjects: Sequence[Struct],
    *,
    bands: Mapping[str, Band] | None = None,
    alarming: Sequence[Answerer] = (),
    skips: Mapping[str, str] | None = None,
) -> None:
    """Run every law of askers on what the factory makes.

    `skips` maps the name of a law to the reason why it cannot hold. Raises AssertionError for a broken law, ConfigError
    for a skip of an unknown law or without a reason.
    """
    run(CHECKS, AskerFixture(factory=factory, subjects=subjects, bands=bands, alarming=alarming), skips or {})


def check_well_formed(fixture: AskerFixture) -> None:
    """Check that name, version and type of subject are what the port says, and that the subjects given are of it."""
    asker = fixture.factory()
    faults = {
        "name is not a word": not asker.name.isidentifier(),
        "version is empty": not asker.version,
        "subject is not a msgspec Struct type": Struct not in getattr(asker.subject, "__mro__", ()),
        "codes is not a frozenset of codes, at least one": _verifies(asker)
        and not (type(asker.codes) is frozenset and asker.codes),
        "the fixture has no subjects": not fixture.subjects,
        "a subject of the fixture is not of its type": not all(
            isinstance(subject, asker.subject) for subject in fixture.subjects
        ),
    }
    for fault in [what for what, wrong in faults.items() if wrong]:
        raise broken("well_formed", asker, fault, reproduce="look at the attributes of the asker and of the fixture")


def check_lazy(fixture: AskerFixture) -> None:
    """Check that making a dialogue runs none of it, and that running it touches nothing outside."""
    for asker, subject in _each(fixture):
        dialogue = asker.inquire(subject)
        if not inspect.isgenerator(dialogue) or inspect.getgeneratorstate(dialogue) != inspect.GEN_CREATED:
            what = "inquire() does more than return a dialogue that has not begun"
            raise broken("lazy", asker, what, reproduce=f"asker.inquire({subject!r})")
        with touches() as seen, suppress(PermissionError):
            converse(asker.inquire(subject), alike(0))
        if seen:
            what = f"its dialogue did {', '.join(sorted(set(seen)))}: it may only yield queries"
            raise broken("lazy", asker, what, reproduce=fixture.again(subject, "alike(0)"))


def check_asks(fixture: AskerFixture) -> None:
    """Check that a dialogue yields queries, at least one a round, and ends after a bounded number of rounds."""
    for asker, subject in _each(fixture):
        for seed in _SEEDS:
            talk = converse(asker.inquire(subject), alike(seed))
            again = fixture.again(subject, f"alike({seed})")
            if not talk.rounds:
                raise broken("asks", asker, "it answers without having asked", reproduce=again)
            if talk.said is None:
                raise broken("asks", asker, f"it still asks after {ROUNDS} rounds", reproduce=again)
            if not all(type(queries) is tuple and queries and _are_queries(queries) for queries in talk.rounds):
                raise broken("asks", asker, "it yields something else than a tuple of queries", reproduce=again)


def check_answers(fixture: AskerFixture) -> None:
    """Check that a dialogue returns readings or failures, at least one, signed by the asker and with a band."""
    for asker, subject in _each(fixture):
        bands = fixture.graded(asker)
        for label, answer in _answerers(fixture):
            talk = converse(asker.inquire(subject), answer)
            fault = _fault(asker, bands, talk)
            if fault:
                raise broken("answers", asker, fault, reproduce=fixture.again(subject, label))


def check_failures(fixture: AskerFixture) -> None:
    """Check that a query that failed, any of them and for any cause, gives a reading or a failure and never raises."""
    for asker, subject in _each(fixture):
        for cause in Cause:
            for place in (None, *range(_count(asker, subject))):
                label = f"failing({cause!r}, {'every query' if place is None else f'query {place}'})"
                _survives("failures", fixture, asker, subject, (label, _failing(cause, place)))


def check_junk(fixture: AskerFixture) -> None:
    """Check that replies without draws, of the wrong number or of hostile text give a reading or a failure."""
    for asker, subject in _each(fixture):
        for text in HOSTILE_TEXTS:
            _survives("junk", fixture, asker, subject, (f"saying({text!r})", _saying(text)))
        for draws in (0, 1, 50):
            _survives("junk", fixture, asker, subject, (f"drawing({draws})", _drawing(draws)))


def check_identical_is_clear(fixture: AskerFixture) -> None:
    """Check that arms that answer alike never alarm, whatever it is that they answer."""
    for asker, subject in _each(fixture):
        bands = fixture.graded(asker)
        for seed in _SEEDS:
            talk = converse(asker.inquire(subject), alike(seed))
            roles = {query.role for queries in talk.rounds for query in queries} & _ARMS
            for said in talk.said or ():
                if len(roles) > 1 and isinstance(said, Reading) and _alarms(said, bands):
                    what = f"{said.code} scores {said.score}, an alarm, although all arms gave the same answers"
                    raise broken("identical_is_clear", asker, what, reproduce=fixture.again(subject, f"alike({seed})"))


def check_symmetric(fixture: AskerFixture) -> None:
    """Check that what the subject is asked, its shadow is asked under the same prompt, tools and options.

    A shadow may be asked one thing in several contexts.
    """
    for asker, subject in _each(fixture):
        for seed in _SEEDS:
            for queries in converse(asker.inquire(subject), alike(seed)).rounds:
                asked = {role: _distinct(_terms(query) for query in queries if query.role is role) for role in _ARMS}
                if asked[Role.SUBJECT] and asked[Role.SHADOW] and asked[Role.SUBJECT] != asked[Role.SHADOW]:
                    what = "subject and shadow are asked under different terms"
                    raise broken("symmetric", asker, what, reproduce=fixture.again(subject, f"alike({seed})"))


def check_deterministic(fixture: AskerFixture) -> None:
    """Check that equal subjects and answers give equal queries and an equal end, from one asker twice and from two."""
    for asker, subject in _each(fixture):
        for label, answer in _answerers(fixture):
            talks = [converse(who.inquire(subject), answer) for who in (asker, asker, fixture.factory())]
            if talks != [talks[0]] * len(talks):
                what = "equal answers to equal questions about one subject come to different ends"
                raise broken("deterministic", asker, what, reproduce=f"{fixture.again(subject, label)}, twice")


def check_closes(fixture: AskerFixture) -> None:
    """Check that a dialogue can be given up at any point: closing it raises nothing and asks nothing more."""
    for asker, subject in _each(fixture):
        for rounds in range(len(converse(asker.inquire(subject), alike(0)).rounds) + 1):
            again = f"converse(asker.inquire({subject!r}), alike(0), rounds={rounds})"
            with unraised("closes", asker, reproduce=again):
                converse(asker.inquire(subject), alike(0), rounds=rounds)


def check_movable(fixture: AskerFixture) -> None:
    """Check that a subject survives being saved and restored, and that its dialogue is then the same."""
    for asker, subject in _each(fixture):
        with unraised("movable", asker, reproduce=f"msgspec.json.encode({subject!r}), and decode it"):
            restored = msgspec.json.decode(msgspec.json.encode(subject), type=asker.subject)
        if restored != subject or _talk(asker, restored) != _talk(asker, subject):
            what = "a saved and restored subject is another one, or leads to another dialogue"
            raise broken("movable", asker, what, reproduce=f"msgspec.json.encode({subject!r}), and decode it")


def check_can_alarm(fixture: AskerFixture) -> None:
    """Check that with default settings each code that has a band alarms for some answers."""
    asker = fixture.factory()
    alarmed: set[str] = set()
    said_any = False
    for who, subject in _each(fixture):
        bands = fixture.graded(who)
        for _, answer in _answerers(fixture):
            readings = [said for said in converse(who.inquire(subject), answer).said or () if isinstance(said, Reading)]
            alarmed.update(said.code for said in readings if _alarms(said, bands))
            said_any = said_any or bool(readings)
    silent = sorted(fixture.graded(asker).keys() - alarmed)
    if silent or not said_any:
        what = f"no answers are known that let {', '.join(silent) or 'it say a reading'} alarm"
        how = "give AskerFixture `alarming` answers, or mend the threshold"
        raise broken("can_alarm", asker, what, reproduce=how)


CHECKS: tuple[Callable[[AskerFixture], None], ...] = (
    check_well_formed,
    check_lazy,
    check_asks,
    check_answers,
    check_failures,
    check_junk,
    check_identical_is_clear,
    check_symmetric,
    check_deterministic,
    check_closes,
    check_movable,
    check_can_alarm,
)
"""Every law of askers."""


def _each(fixture: AskerFixture) -> Iterator[tuple[Asker, Struct]]:
    for subject in fixture.subjects:
        yield fixture.factory(), subject


def _answerers(fixture: AskerFixture) -> Iterator[tuple[str, Answerer]]:
    for place, answer in enumerate(fixture.alarming):
        yield f"alarming[{place}]", answer
    for seed in _SEEDS:
        yield f"alike({seed})", alike(seed)
        yield f"by_role({seed})", by_role(seed)


def _verifies(asker: object) -> TypeGuard[Verifier]:
    return hasattr(asker, "codes")


def _talk(asker: Asker, subject: Struct) -> Conversation:
    return converse(asker.inquire(subject), by_role(0))


def _count(asker: Asker, subject: Struct) -> int:
    return sum(len(queries) for queries in converse(asker.inquire(subject), alike(0)).rounds)


def _are_queries(queries: tuple[object, ...]) -> bool:
    return all(isinstance(query, Query) for query in queries)


def _terms(query: Query) -> tuple[object, ...]:
    return query.prompt, query.system, query.tools, query.options, query.schema


def _distinct(terms: Iterable[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Return what differs, in an order that depends on nothing else. Definitions of tools cannot be hashed."""
    told = {repr(one): one for one in terms}
    return [told[key] for key in sorted(told)]


def _alarms(said: Reading, bands: Mapping[str, Band]) -> bool:
    band = bands.get(said.code)
    return band is not None and band.level(said.score) is not Level.CLEAR


def _fault(asker: Asker, bands: Mapping[str, Band], talk: Conversation) -> str:
    if type(talk.said) is not tuple or not talk.said:
        return f"it returns {talk.said!r}, not a tuple of readings and failures"
    for said in talk.said:
        signed = maker(said)
        if signed is None:
            return f"it says {type(said).__name__}, which is no Reading or Failure"
        if signed != (asker.name, asker.version):
            return f"it signs as {' '.join(signed)}, but is {asker.name} {asker.version}"
        if isinstance(said, Reading) and said.code not in bands:
            return f"it says {said.code}, which has no band"
    return ""


def _survives(law: str, fixture: AskerFixture, asker: Asker, subject: Struct, answering: tuple[str, Answerer]) -> None:
    label, answer = answering
    again = fixture.again(subject, label)
    with unraised(law, asker, reproduce=again):
        talk = converse(asker.inquire(subject), answer)
    fault = _fault(asker, fixture.graded(asker), talk)
    if fault:
        raise broken(law, asker, fault, reproduce=again)


def _failing(cause: Cause, place: int | None) -> Answerer:
    """Return who fails at one query, or at all, and answers the others."""
    asked: list[Query] = []
    kind = alike(0)

    def answer(query: Query) -> Reply | Failure:
        asked.append(query)
        if place is None or len(asked) == place + 1:
            return Failure(detector="panel", version="1", cause=cause, detail="as tested")
        return kind(query)

    return answer


def _saying(text: str) -> Answerer:
    call = Raw(msgspec.json.encode({"tool": "never_declared", "arguments": [None, text.isascii()]}))

    def answer(query: Query) -> Reply:
        draws = (Draw(text=text, tool_calls=(call,)),) * max(1, query.samples)
        return Reply(query=query, model=text, draws=draws, choice=((text, 1.0),))

    return answer


def _drawing(draws: int) -> Answerer:
    return lambda query: Reply(query=query, model="m-1", draws=(Draw(text="yes"),) * draws)
