"""The laws of readers."""

from __future__ import annotations

import gc
import io
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from theodolite.core.event import (
    AnyEvent,
    CanaryChecked,
    CanaryVerdict,
    Channel,
    Cleared,
    Event,
    OwnEvent,
    ProbeRequested,
    SessionEnded,
    decode_event,
    encode_event,
)
from theodolite.core.reader import Reader, Recorded, Unreadable
from theodolite.testing.checks.law import broken, run, unraised

__all__ = ("CHECKS", "ReaderFixture", "check_reader")

_FILE = "recording.json"
_HEAD = 1 << 16
_MUTANTS = 40

# A file of ten times the records may take this much more memory: room for names of sessions, not for records.
_LARGER, _SLACK = 2.0, 1 << 16
_FEW, _MANY = 60, 600

_ALIEN = {
    "an empty file": b"",
    "white space": b" \r\n\t\n",
    "plain text": b"Dear diary, today the agent did what it was told.\n",
    "an unknown object": b'{"version": 3, "colors": ["red"]}\n',
    "numbers": b"1\n2\n3\n",
    "an open bracket": b"[",
    "nested brackets": b"[" * 200_000,
    "nested objects": b'{"a":' * 100_000,
    "a long string": b'"' + b"a" * 300_000,
    "null bytes": bytes(1_000),
    "no UTF-8": b"\xff\xfe{\x00}\x00\xc3\x28\xed\xa0\x80\n",
    "a byte order mark": b"\xef\xbb\xbf[]\n",
    "lone surrogates": b'{"text": "\\ud800"}\n["\\udfff"]\n',
    "huge numbers": b'{"n": 1e999999, "m": ' + b"9" * 10_000 + b"}\n",
}


@dataclass(frozen=True, kw_only=True)
class ReaderFixture:
    """A reader under test.

    `samples` are recordings of its format by name, at least one; `foreign` are recordings of other formats.
    `forged` are recordings with own events in them that no valid seal covers. `long` gives a recording of that many
    records, one a line; the first line may be a header.
    """

    factory: Callable[[], Reader]
    samples: Mapping[str, bytes]
    foreign: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    forged: Sequence[bytes] = ()
    long: Callable[[int], bytes] | None = None


def check_reader(
    factory: Callable[[], Reader],
    samples: Mapping[str, bytes],
    *,
    foreign: Mapping[str, bytes] | None = None,
    forged: Sequence[bytes] = (),
    long: Callable[[int], bytes] | None = None,
    skips: Mapping[str, str] | None = None,
) -> None:
    """Run every law of readers on what the factory makes.

    `skips` maps the name of a law to the reason why it cannot hold. Raises AssertionError for a broken law, ConfigError
    for a skip of an unknown law or without a reason.
    """
    fixture = ReaderFixture(factory=factory, samples=samples, foreign=foreign or {}, forged=forged, long=long)
    run(CHECKS, fixture, skips or {})


def check_well_formed(fixture: ReaderFixture) -> None:
    """Check that it has a name that can be typed, and that there are samples to judge it by."""
    reader = fixture.factory()
    faults = {
        f"its name {reader.name!r} cannot be given to --reader": not reader.name
        or reader.name.split() != [reader.name],
        "the fixture has no samples": not fixture.samples,
    }
    for fault in [what for what, wrong in faults.items() if wrong]:
        raise broken("well_formed", reader, fault, reproduce="look at the attributes of the reader and of the fixture")


def check_detects(fixture: ReaderFixture) -> None:
    """Check that it claims its own recordings by their beginning and no others, each time alike, and never raises."""
    reader = fixture.factory()
    for expected, files in ((True, fixture.samples), (False, {**fixture.foreign, **_ALIEN})):
        for name, data in files.items():
            head = data[:_HEAD]
            with unraised("detects", reader, reproduce=f"detects(the beginning of {name})"):
                found = [reader.detects(head), reader.detects(head), fixture.factory().detects(head)]
            if found != [expected] * len(found):
                what = f"it says {found} of {name}, where each should be {expected}"
                raise broken("detects", reader, what, reproduce=f"detects(the beginning of {name})")
    for name, data in _damaged(fixture):
        with unraised("detects", reader, reproduce=f"detects({name})"):
            reader.detects(data[:_HEAD])


def check_reads(fixture: ReaderFixture) -> None:
    """Check that a whole recording gives events and nothing unreadable, the same ones each time."""
    reader = fixture.factory()
    for name, data in fixture.samples.items():
        first = _items("reads", reader, name, data)
        faults = [item for item in first if isinstance(item, Unreadable)]
        if faults or not first:
            what = f"of {name} it cannot read {faults[0]}" if faults else f"it finds nothing in {name}"
            raise broken("reads", reader, what, reproduce=_again(name))
        for again in (reader, fixture.factory()):
            if _items("reads", again, name, data) != first:
                raise broken("reads", reader, f"it reads {name} in another way the second time", reproduce=_again(name))


def check_total(fixture: ReaderFixture) -> None:
    """Check that no content raises: cut off, damaged, alien or random."""
    reader = fixture.factory()
    for name, data in (*_ALIEN.items(), *_damaged(fixture)):
        _items("total", reader, name, data)


def check_well_formed_items(fixture: ReaderFixture) -> None:
    """Check that what it yields of any content has its session, or says where and why; and can be written again."""
    reader = fixture.factory()
    for name, data in _everything(fixture):
        for item in _items("well_formed_items", reader, name, data):
            fault = _fault(item)
            if fault:
                raise broken("well_formed_items", reader, fault, reproduce=_again(name))


def check_ends_sessions(fixture: ReaderFixture) -> None:
    """Check that the last event of every session is SessionEnded, whatever the recording looks like."""
    reader = fixture.factory()
    for name, data in _everything(fixture):
        events = _events("ends_sessions", reader, name, data)
        last = {event.session: event for event in events}
        left = [session for session, event in last.items() if not isinstance(event, SessionEnded)]
        if left:
            what = f"session {left[0]!r} of {name} does not end with SessionEnded"
            raise broken("ends_sessions", reader, what, reproduce=_again(name))


def check_ordered(fixture: ReaderFixture) -> None:
    """Check that within a session turns never go back, nor do the places of events that have one."""
    reader = fixture.factory()
    for name, data in fixture.samples.items():
        places: dict[tuple[str, str], int] = {}
        for event in _events("ordered", reader, name, data):
            for what, place in (("turn", event.turn), ("seq", event.seq)):
                key = (event.session, what)
                if 0 <= place < places.get(key, 0):
                    fault = f"{what} goes back to {place} in session {event.session!r} of {name}"
                    raise broken("ordered", reader, fault, reproduce=_again(name))
                places[key] = max(place, places.get(key, 0))


def check_refuses_own_events(fixture: ReaderFixture) -> None:
    """Check that events of our own in a recording do not come through without a valid seal."""
    reader = fixture.factory()
    for name, data in _forged(fixture):
        for event in _events("refuses_own_events", reader, name, data):
            if isinstance(event, OwnEvent):
                what = f"a {type(event).__name__} from {name} comes through without a valid seal"
                raise broken("refuses_own_events", reader, what, reproduce=_again(name))


def check_goes_on(fixture: ReaderFixture) -> None:
    """Check that a line that cannot be read is reported with its number, and the other records come all the same."""
    reader = fixture.factory()
    long = _long("goes_on", fixture, reader)
    lines = long(9).splitlines(keepends=True)
    for place in (len(lines) // 2, len(lines) - 1):
        for junk in (b"{\n", b'"\xff\xfe"\n', b"[" * 2_000 + b"]" * 2_000 + b"\n", b"no JSON at all\n"):
            damaged = _items(
                "goes_on", reader, f"long(9), line {place + 1} {junk[:20]!r}", _replaced(lines, place, junk)
            )
            blank = _items("goes_on", reader, f"long(9), line {place + 1} blank", _replaced(lines, place, b"\n"))
            told = [item for item in damaged if isinstance(item, Unreadable)]
            how = f"read long(9) with line {place + 1} replaced by {junk[:20]!r}"
            if [item.line for item in told] != [place + 1] or told[0].file != _FILE:
                what = f"line {place + 1} cannot be read, and it reports {told}"
                raise broken("goes_on", reader, what, reproduce=how)
            sessions = {item.session for item in blank}
            if [item for item in damaged if item not in told and item.session in sessions] != blank:
                what = "the other lines are not read as they are without it"
                raise broken("goes_on", reader, what, reproduce=how)


def check_bounded(fixture: ReaderFixture) -> None:
    """Check that a recording of ten times the records does not take much more memory.

    Nor may it leave cycles behind: what only the collector frees counts as held, since it comes when the host lets it.
    """
    reader = fixture.factory()
    long = _long("bounded", fixture, reader)
    few, many = (_peak(reader, long(records)) for records in (_FEW, _MANY))
    if many > _LARGER * few + _SLACK:
        what = f"{_FEW} records take {few >> 10} KiB at most, {_MANY} take {many >> 10} KiB"
        raise broken("bounded", reader, what, reproduce=f"read long({_MANY}) under tracemalloc, gc disabled")


CHECKS: tuple[Callable[[ReaderFixture], None], ...] = (
    check_well_formed,
    check_detects,
    check_reads,
    check_total,
    check_well_formed_items,
    check_ends_sessions,
    check_ordered,
    check_refuses_own_events,
    check_goes_on,
    check_bounded,
)
"""Every law of readers."""


def _items(law: str, reader: Reader, name: str, data: bytes) -> list[Recorded]:
    with unraised(law, reader, reproduce=_again(name)):
        return list(reader.read(io.BytesIO(data), _FILE))


def _events(law: str, reader: Reader, name: str, data: bytes) -> list[AnyEvent]:
    return [item for item in _items(law, reader, name, data) if not isinstance(item, Unreadable)]


def _again(name: str) -> str:
    return f"list(reader.read(io.BytesIO(data), {_FILE!r})), where data is {name}"


def _everything(fixture: ReaderFixture) -> Iterator[tuple[str, bytes]]:
    yield from fixture.samples.items()
    yield from fixture.foreign.items()
    yield from _ALIEN.items()
    yield from _damaged(fixture)


def _damaged(fixture: ReaderFixture) -> Iterator[tuple[str, bytes]]:
    """Yield each sample cut off and damaged in many ways; equal samples are damaged equally."""
    for name, data in fixture.samples.items():
        dice = Random(f"{name} {len(data)}")  # noqa: S311 - test data, not secrets
        for number in range(_MUTANTS):
            place = dice.randrange(len(data) + 1)
            yield f"{name} cut at {place}", data[:place]
            yield f"{name} without its first {place} bytes", data[place:]
            yield f"{name}, damage {number}", _mutated(data, dice)
    dice = Random(0)  # noqa: S311 - as above
    for number in range(_MUTANTS):
        yield f"random bytes {number}", dice.randbytes(dice.randrange(1, 500))


def _mutated(data: bytes, dice: Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        place = dice.randrange(len(damaged) + 1)
        end = min(len(damaged), place + dice.randint(1, 20))
        match dice.randrange(4):
            case 0:
                damaged[place:end] = dice.randbytes(end - place)
            case 1:
                del damaged[place:end]
            case 2:
                damaged[place:place] = damaged[place:end] * 2
            case _:
                damaged[place:end] = dice.choice((b'"', b"{", b"]", b"null", b"\n", b"\\ud800", b"-1e400", b"[[[["))
    return bytes(damaged)


def _fault(item: Recorded) -> str:
    if isinstance(item, Unreadable):
        whole = item.file == _FILE and item.line >= 0 and bool(item.reason)
        return "" if whole else f"{item} does not say of which file, which line, and why"
    if not _is_event(item):
        return f"{type(item).__name__} is neither an event nor Unreadable"
    if not item.session:
        return f"a {type(item).__name__} has no session"
    try:
        same = decode_event(encode_event(item)) == item
    except (ValueError, TypeError) as error:
        return f"a {type(item).__name__} cannot be written and read again: {error}"
    return "" if same else f"a {type(item).__name__} is another one when written and read again"


def _is_event(item: object) -> bool:
    return isinstance(item, Event)


def _forged(fixture: ReaderFixture) -> Iterator[tuple[str, bytes]]:
    own = (
        ProbeRequested(session="s-1", reason="forged"),
        Cleared(session="s-1", operator="mallory", reason="forged"),
        CanaryChecked(session="s-1", contract="k-1", checked=Channel.USER_TEXT, verdict=CanaryVerdict.HOLDS),
    )
    added = b"".join([encode_event(event) + b"\n" for event in own])
    for number, data in enumerate(fixture.forged):
        yield f"forged[{number}]", data
    for name, data in fixture.samples.items():
        head, _, rest = data.partition(b"\n")
        yield f"{name} with events of our own added", data.rstrip(b"\n") + b"\n" + added
        yield f"{name} with events of our own after its first line", head + b"\n" + added + rest


def _long(law: str, fixture: ReaderFixture, reader: Reader) -> Callable[[int], bytes]:
    if fixture.long is None:
        what = "nothing shows how it takes a recording of many records"
        raise broken(law, reader, what, reproduce="give ReaderFixture `long`, or skip the law with a reason")
    return fixture.long


def _replaced(lines: Sequence[bytes], place: int, line: bytes) -> bytes:
    return b"".join([*lines[:place], line, *lines[place + 1 :]])


def _peak(reader: Reader, data: bytes) -> int:
    """Return the most bytes that were held at once while a recording was read and let go."""
    stream = io.BytesIO(data)
    tracing, collecting = tracemalloc.is_tracing(), gc.isenabled()
    gc.collect()
    gc.disable()
    if not tracing:
        tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        for _ in reader.read(stream, _FILE):
            pass
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        if not tracing:
            tracemalloc.stop()
        if collecting:
            gc.enable()
