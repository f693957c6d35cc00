"""The laws of detectors.

Not all of them can be seen from outside. A clock or a random number shows only where it changes an answer, a thread not
before Python 3.13; for detectors in this tree the import contracts forbid both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar, get_args

import msgspec
from msgspec import Struct

from theodolite.core.calibration import Band
from theodolite.core.detector import Answer, Detector, Feature, asks
from theodolite.core.event import AnyEvent, encode_event
from theodolite.core.inquiry import Inquiry
from theodolite.core.reading import Failure, Level, Reading
from theodolite.testing.checks.audit import touches
from theodolite.testing.checks.cost import LONG, SHORT, TEXTUAL, text_growth, update_costs
from theodolite.testing.checks.dialogue import Answerer, converse, maker
from theodolite.testing.checks.law import broken, run, unraised
from theodolite.testing.checks.streams import Stream, streams
from theodolite.testing.playback import Playback
from theodolite.testing.sessions import flood_session, stamped, synthetic_session

__all__ = ("CHECKS", "DetectorCheck", "DetectorFixture", "check_detector")

S = TypeVar("S", bound=Struct)

_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_EVENTS = frozenset(get_args(AnyEvent))

# Ten times the events may cost this much more per event before it counts as growth: room for noise, not for a scan of
# the past, which costs about ten times as much.
_SLOWER = 3.0
# Nanoseconds below which a difference in cost is not looked at: a few attribute look-ups.
_NOISE = 5_000
# Ten times the events may take this much more memory: room for counters that gain digits and windows that fill.
_LARGER, _SLACK = 2, 4_096
# Doubling the text may take this much longer: 2 is linear, 4 is quadratic.
_STEEPER = 3.0
_ATTEMPTS = 3


@dataclass(frozen=True, kw_only=True)
class DetectorFixture(Generic[S]):
    """A detector under test.

    `factory` makes a new one with its default settings. `alarming` gives a session that lets a code alarm; a code that
    is not in it is looked for in generated sessions. `answers` are tried on inquiries that the detector opens, for
    codes that only a dialogue says.
    """

    factory: Callable[[], Detector[S]]
    alarming: Mapping[str, Callable[[], Iterable[AnyEvent]]] = field(
        default_factory=dict[str, Callable[[], Iterable[AnyEvent]]]
    )
    answers: Sequence[Answerer] = ()


class DetectorCheck(Protocol):
    """One law of detectors as a function. Raises AssertionError where it is broken."""

    @property
    def __name__(self) -> str:
        """Return `check_` and the name of the law."""
        ...

    def __call__(self, fixture: DetectorFixture[S], /) -> None:
        """Return when the law holds."""
        ...


def check_detector(
    factory: Callable[[], Detector[S]],
    *,
    alarming: Mapping[str, Callable[[], Iterable[AnyEvent]]] | None = None,
    answers: Sequence[Answerer] = (),
    skips: Mapping[str, str] | None = None,
) -> None:
    """Run every law of detectors on what the factory makes.

    `skips` maps the name of a law to the reason why it cannot hold. Raises AssertionError for a broken law, ConfigError
    for a skip of an unknown law or without a reason.
    """
    run(CHECKS, DetectorFixture(factory=factory, alarming=alarming or {}, answers=answers), skips or {})


def check_well_formed(fixture: DetectorFixture[S]) -> None:
    """Check that name, version, event types, features and bands are what the port says; bands say what they rest on."""
    detector = fixture.factory()
    faults = {
        "name is not a lower-case word": not _NAME.match(detector.name),
        "version is empty": not detector.version,
        "reads is not a frozenset of event types, at least one": not (
            type(detector.reads) is frozenset and detector.reads and detector.reads <= _EVENTS
        ),
        "needs is not a frozenset of features": not (
            type(detector.needs) is frozenset and detector.needs <= frozenset(Feature)
        ),
        "a code of its bands does not begin with its name": not all(
            code.startswith(f"{detector.name}.") for code in detector.bands
        ),
        "a band has no source": not all(band.source for band in detector.bands.values()),
        "its state is not a msgspec Struct": Struct not in type(detector.begin()).__mro__,
    }
    for fault in [what for what, wrong in faults.items() if wrong]:
        raise broken(
            "well_formed", detector, fault, reproduce="look at the attributes of detector and detector.begin()"
        )


def check_signed(fixture: DetectorFixture[S]) -> None:
    """Check that an answer is a tuple of readings, failures and inquiries, each signed by its maker."""
    for stream in streams():
        detector = fixture.factory()
        for event, answer in _answers(detector, stream):
            fault = _unsigned(detector, event, answer)
            if fault:
                raise broken("signed", detector, f"at seq {event.seq} {fault}", reproduce=stream.again)


def check_coded(fixture: DetectorFixture[S]) -> None:
    """Check that every code that it says has a band."""
    for stream in streams():
        detector = fixture.factory()
        for event, reading in _readings(detector, stream):
            if reading.code not in detector.bands:
                what = f"at seq {event.seq} it says {reading.code}, which has no band"
                raise broken("coded", detector, what, reproduce=stream.again)


def check_evidence(fixture: DetectorFixture[S]) -> None:
    """Check that evidence points to events that exist: to the one that was read, or to earlier ones."""
    for stream in streams():
        detector = fixture.factory()
        for event, reading in _readings(detector, stream):
            absent = [seq for item in reading.evidence for seq in item.seqs if not 0 <= seq <= event.seq]
            if absent:
                what = f"at seq {event.seq} the evidence of {reading.code} points to events {absent}"
                raise broken("evidence", detector, what, reproduce=stream.again)


def check_deterministic(fixture: DetectorFixture[S]) -> None:
    """Check that equal events give equal answers and equal states, from one detector twice and from two."""
    for stream in streams():
        detector = fixture.factory()
        first, second, other = Playback(detector), Playback(detector), Playback(fixture.factory())
        said = first.run(stream.events)
        for again, whose in ((second, "a second session"), (other, "a second detector")):
            if again.run(stream.events) != said or again.state != first.state:
                what = f"{whose} gets other answers, or another state, for equal events"
                raise broken("deterministic", detector, what, reproduce=f"{stream.again}, twice")


def check_prefix(fixture: DetectorFixture[S]) -> None:
    """Check that what comes later changes nothing that was said before."""
    for stream in streams():
        detector = fixture.factory()
        playback = Playback(detector)
        told = [(answer, repr(answer)) for answer in map(playback.feed, stream.events)]
        late = [seq for seq, (answer, text) in enumerate(told) if repr(answer) != text]
        if late:
            what = f"its answers to events {late[:5]} were changed afterwards"
            raise broken("prefix", detector, what, reproduce=stream.again)
        cut = len(stream.events) // 2
        if Playback(fixture.factory()).run(stream.events[:cut]) != [answer for answer, _ in told[:cut]]:
            what = f"a session of the first {cut} events gets other answers than the same events in a longer one"
            raise broken("prefix", detector, what, reproduce=stream.again)


def check_reads_only(fixture: DetectorFixture[S]) -> None:
    """Check that it changes neither the event nor the window."""
    for stream in streams():
        detector = fixture.factory()
        playback = Playback(detector)
        for event in stream.events:
            playback.show(event)
            before = encode_event(event), repr(playback.window)
            if type(event) in detector.reads:
                playback.ask(event)
            if (encode_event(event), repr(playback.window)) != before:
                what = f"it changed the event of seq {event.seq} or the window"
                raise broken("reads_only", detector, what, reproduce=stream.again)


def check_deaf_elsewhere(fixture: DetectorFixture[S]) -> None:
    """Check that it says nothing to, and remembers nothing of, an event of a type that it does not read."""
    for stream in streams():
        detector = fixture.factory()
        playback = Playback(detector)
        for event in stream.events:
            playback.show(event)
            before = playback.save()
            if type(event) in detector.reads:
                playback.ask(event)
            elif playback.ask(event) or msgspec.json.decode(before, type=type(playback.state)) != playback.state:
                what = f"{type(event).__name__} is not among what it reads, and yet it answers or remembers it"
                raise broken("deaf_elsewhere", detector, what, reproduce=f"detector.update(...) in {stream.name}")


def check_total(fixture: DetectorFixture[S]) -> None:
    """Check that it never raises: not for fields that were not shown, unknown tools or hostile text, in any order."""
    for stream in streams():
        for events, how in ((stream.events, stream.again), (_backwards(stream), f"{stream.again}, in reverse order")):
            detector = fixture.factory()
            with unraised("total", detector, reproduce=how):
                Playback(detector).run(events)


def check_restorable(fixture: DetectorFixture[S]) -> None:
    """Check that its state survives being saved and restored at every event, with equal answers afterwards."""
    for stream in streams():
        detector = fixture.factory()
        steady, moved = Playback(detector), Playback(detector)
        for event in stream.events:
            with unraised("restorable", detector, reproduce=f"{stream.again}, save and restore at seq {event.seq}"):
                moved.restore(moved.save())
            if steady.state != moved.state or steady.feed(event) != moved.feed(event):
                what = f"restored before seq {event.seq} it has another state, or gives another answer"
                raise broken("restorable", detector, what, reproduce=stream.again)


def check_sessions_apart(fixture: DetectorFixture[S]) -> None:
    """Check that two sessions that take turns on one detector get what two detectors would have given them."""
    one, two = streams()[:2]
    alone = [Playback(fixture.factory()).run(stream.events) for stream in (one, two)]
    detector = fixture.factory()
    first, second = Playback(detector), Playback(detector)
    together: tuple[list[Answer], list[Answer]] = ([], [])
    for place in range(max(len(one.events), len(two.events))):
        for playback, stream, said in ((first, one, together[0]), (second, two, together[1])):
            said.extend(map(playback.feed, stream.events[place : place + 1]))
    if list(together) != alone:
        what = "two sessions that share it hear of each other"
        raise broken("sessions_apart", detector, what, reproduce=f"play {one.name} and {two.name} in turns")


def check_immutable(fixture: DetectorFixture[S]) -> None:
    """Check that the detector itself stays as it was made, whatever it reads."""
    detector = fixture.factory()
    before = _attributes(detector)
    for stream in streams():
        Playback(detector).run(stream.events)
        after = _attributes(detector)
        changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        if changed:
            what = f"its own {', '.join(changed)} changed: what it remembers belongs into the state"
            raise broken("immutable", detector, what, reproduce=stream.again)


def check_no_io(fixture: DetectorFixture[S]) -> None:
    """Check that it opens no file and no socket, and starts no process."""
    for stream in streams():
        detector = fixture.factory()
        playback = Playback(detector)
        with touches() as seen:
            for event in stream.events:
                try:
                    playback.feed(event)
                except PermissionError:
                    break
        if seen:
            raise broken("no_io", detector, f"it did {', '.join(sorted(set(seen)))}", reproduce=stream.again)


def check_bounded(fixture: DetectorFixture[S]) -> None:
    """Check that ten times the events do not make its state much larger."""
    for turns in (True, False):
        detector = fixture.factory()
        playback = Playback(detector)
        sizes = {}
        for event in stamped(flood_session(LONG, turns=turns)):
            playback.feed(event)
            if event.seq + 1 in {SHORT, LONG}:
                sizes[event.seq + 1] = len(playback.save())
        if sizes[LONG] > _LARGER * sizes[SHORT] + _SLACK:
            what = f"its state takes {sizes[SHORT]} bytes after {SHORT} events and {sizes[LONG]} after {LONG}"
            how = f"Playback(detector).run(stamped(flood_session({LONG}, turns={turns})))"
            raise broken("bounded", detector, what, reproduce=how)


def check_constant_cost(fixture: DetectorFixture[S]) -> None:
    """Check that an event late in a long session costs what it costs early."""
    detector = fixture.factory()
    slow: list[str] = []
    for _ in range(_ATTEMPTS):
        slow = [
            f"{name} costs {early / 1e3:.1f} µs around event {SHORT} and {late / 1e3:.1f} µs around {LONG}"
            for name, (early, late) in update_costs(detector).items()
            if late > _SLOWER * early + _NOISE
        ]
        if not slow:
            return
    raise broken("constant_cost", detector, slow[0], reproduce=f"time update over stamped(flood_session({LONG}))")


def check_linear(fixture: DetectorFixture[S]) -> None:
    """Check that an event costs at most in proportion to its own text."""
    detector = fixture.factory()
    for kind in TEXTUAL:
        for pattern in ("a", "ab ", "0-", "(["):
            grown = text_growth(detector, kind, pattern, limit=_STEEPER) if kind in detector.reads else None
            if grown is not None and grown.ratio > _STEEPER:
                what = f"{kind.__name__} of {grown.size} characters {pattern!r} costs {grown.ratio:.1f} x half of it"
                raise broken("linear", detector, what, reproduce=f"time update on a text of {pattern!r} repeated")


def check_inquiries(fixture: DetectorFixture[S]) -> None:
    """Check that whoever opens inquiries can hold their dialogues, and that their subjects fit and can be saved."""
    for stream in streams():
        detector = fixture.factory()
        for event, answer in _answers(detector, stream):
            for inquiry in [item for item in answer if isinstance(item, Inquiry)]:
                fault = _unaskable(detector, inquiry)
                if fault:
                    raise broken("inquiries", detector, f"at seq {event.seq} {fault}", reproduce=stream.again)


def check_can_alarm(fixture: DetectorFixture[S]) -> None:
    """Check that with default settings each code reaches its alert threshold on some input."""
    detector = fixture.factory()
    for code, band in detector.bands.items():
        if code in fixture.alarming:
            events = tuple(stamped(fixture.alarming[code]()))
            tried = [Stream(f"alarming[{code!r}]()", events)]
        else:
            tried = [*streams(), *_more_streams()]
        if not any(_alarms(fixture, stream, code, band) for stream in tried):
            what = f"{code} (alert at {band.alert}) stays clear in {', '.join(stream.name for stream in tried)}"
            how = f"give DetectorFixture an `alarming` session for {code!r}, or mend the threshold"
            raise broken("can_alarm", detector, what, reproduce=how)


CHECKS: tuple[DetectorCheck, ...] = (
    check_well_formed,
    check_total,
    check_signed,
    check_coded,
    check_evidence,
    check_deterministic,
    check_prefix,
    check_reads_only,
    check_deaf_elsewhere,
    check_restorable,
    check_sessions_apart,
    check_immutable,
    check_no_io,
    check_bounded,
    check_constant_cost,
    check_linear,
    check_inquiries,
    check_can_alarm,
)
"""Every law of detectors, the cheap ones first."""


def _answers(detector: Detector[S], stream: Stream) -> Iterator[tuple[AnyEvent, Answer]]:
    playback = Playback(detector)
    for event in stream.events:
        yield event, playback.feed(event)


def _readings(detector: Detector[S], stream: Stream) -> Iterator[tuple[AnyEvent, Reading]]:
    for event, answer in _answers(detector, stream):
        for said in answer:
            if isinstance(said, Reading):
                yield event, said


def _unsigned(detector: Detector[S], event: AnyEvent, answer: Answer) -> str:
    if type(answer) is not tuple:
        return f"it answers with {type(answer).__name__}, not a tuple"
    for said in answer:
        signed = maker(said)
        if signed is None:
            return f"it says {type(said).__name__}, which is no Reading, Failure or Inquiry"
        if signed != (detector.name, detector.version):
            return f"it signs as {' '.join(signed)}, but is {detector.name} {detector.version}"
        if isinstance(said, Inquiry) and said.about != event.seq:
            return f"it opens an inquiry about event {said.about}, which is not the one that it reads"
    return ""


def _backwards(stream: Stream) -> tuple[AnyEvent, ...]:
    return tuple(stamped(reversed(stream.events)))


def _attributes(detector: object) -> dict[str, tuple[int, str]]:
    """Return identity and text of every attribute of a detector and of its classes that is not code."""
    spaces: list[Mapping[str, object]] = [vars(made) for made in reversed(type(detector).__mro__[:-1])]
    if hasattr(detector, "__dict__"):
        spaces.append(vars(detector))
    return {name: (id(value), repr(value)) for space in spaces for name, value in space.items() if not callable(value)}


def _unaskable(detector: object, inquiry: Inquiry) -> str:
    if not asks(detector):
        return "it opens an inquiry, but has no `inquire` to hold its dialogue"
    if not isinstance(inquiry.subject, detector.subject):
        return f"its inquiry is about a {type(inquiry.subject).__name__}, not a {detector.subject.__name__}"
    try:
        again = msgspec.json.decode(msgspec.json.encode(inquiry.subject), type=detector.subject)
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        return f"the subject of its inquiry cannot be saved and restored: {error}"
    return "" if again == inquiry.subject else "the subject of its inquiry is another one after save and restore"


def _more_streams() -> Iterator[Stream]:
    for seed in range(3, 13):
        yield Stream(f"synthetic_session(24, seed={seed})", tuple(stamped(synthetic_session(24, seed=seed))))


def _alarms(fixture: DetectorFixture[S], stream: Stream, code: str, band: Band) -> bool:
    detector = fixture.factory()
    for _, answer in _answers(detector, stream):
        for said in answer:
            readings = _settled(detector, said, fixture.answers) if isinstance(said, Inquiry) else (said,)
            if any(
                isinstance(r, Reading) and r.code == code and band.level(r.score) is not Level.CLEAR for r in readings
            ):
                return True
    return False


def _settled(detector: object, inquiry: Inquiry, answers: Sequence[Answerer]) -> Iterator[Reading | Failure]:
    if asks(detector):
        for answer in answers:
            yield from converse(detector.inquire(inquiry.subject), answer).said or ()
