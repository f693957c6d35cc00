"""Each law of readers catches a reader that breaks it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import BinaryIO

import msgspec
import pytest
from msgspec.structs import replace

from theodolite.core.event import (
    AnyEvent,
    MessageObserved,
    OwnEvent,
    SessionEnded,
    decode_event,
    encode_event,
)
from theodolite.core.reader import Reader, Recorded, Unreadable
from theodolite.testing.checks.law import name_of
from theodolite.testing.checks.reader import CHECKS, ReaderFixture, check_reader
from theodolite.testing.sessions import clean_session, flood_session, stamped

HEADER = b"#events\n"


def _written(events: Iterator[AnyEvent]) -> bytes:
    return HEADER + b"".join([encode_event(event) + b"\n" for event in events])


SAMPLES = {"a clean session": _written(stamped(clean_session()))}
FOREIGN = {"a list": b'[{"role": "user"}]'}


def _long(records: int) -> bytes:
    return _written(stamped(flood_session(records)))


class Honest:
    """Reads an event a line under a header: the reader that every mutant here was once."""

    name = "honest-lines"

    def detects(self, head: bytes) -> bool:
        return head.startswith(HEADER)

    def read(self, stream: BinaryIO, file: str) -> Iterator[Recorded]:
        open_sessions: dict[str, None] = {}
        for number, line in enumerate(self.lines(stream), 1):
            if line == HEADER or not line.strip():
                continue
            item = self.item(line, number, file)
            if isinstance(item, SessionEnded):
                open_sessions.pop(item.session, None)
            elif not isinstance(item, Unreadable):
                open_sessions[item.session] = None
            yield item
        yield from [SessionEnded(session=session) for session in open_sessions]

    def lines(self, stream: BinaryIO) -> Iterator[bytes]:
        yield from stream

    def item(self, line: bytes, number: int, file: str) -> Recorded:
        try:
            event = self.event(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return Unreadable(file=file, line=number, reason=type(error).__name__)
        if isinstance(event, OwnEvent):
            return Unreadable(file=file, line=number, reason="an event of our own, without a seal")
        return event if event.session else replace(event, session=file)

    def event(self, line: bytes) -> AnyEvent:
        return decode_event(line)


class Unspeakable(Honest):
    name = "honest lines"


class Guessing(Honest):
    def detects(self, head: bytes) -> bool:
        return b"{" in head


class Moody(Honest):
    asked = itertools.count()

    def detects(self, head: bytes) -> bool:
        return super().detects(head) and next(self.asked) % 2 == 0


class Fragile(Honest):
    def detects(self, head: bytes) -> bool:
        return head.decode().startswith(HEADER.decode())


class HalfBlind(Honest):
    """Cannot read a tool's call."""

    def event(self, line: bytes) -> AnyEvent:
        if b'"ToolCallProposed"' in line:
            raise msgspec.DecodeError("a call")
        return super().event(line)


class Numbering(Honest):
    numbers = itertools.count()

    def event(self, line: bytes) -> AnyEvent:
        return replace(super().event(line), at=float(next(self.numbers)))


class Raising(Honest):
    def item(self, line: bytes, number: int, file: str) -> Recorded:
        item = super().item(line, number, file)
        return self.event(line) if isinstance(item, Unreadable) else item


class Nameless(Honest):
    def item(self, line: bytes, number: int, file: str) -> Recorded:
        item = super().item(line, number, file)
        return item if isinstance(item, Unreadable) else replace(item, session="")


class Reasonless(Honest):
    def item(self, line: bytes, number: int, file: str) -> Recorded:
        item = super().item(line, number, file)
        return replace(item, reason="") if isinstance(item, Unreadable) else item


class Unwritable(Honest):
    """Gives what no file takes."""

    def event(self, line: bytes) -> AnyEvent:
        event = super().event(line)
        if isinstance(event, MessageObserved):
            msgspec.structs.force_setattr(event, "text", "\ud800")
        return event


class Passing(Honest):
    """Gives something else than events."""

    def event(self, line: bytes) -> AnyEvent:
        event = super().event(line)
        return {"event": "?"} if isinstance(event, MessageObserved) else event  # type: ignore[return-value]  # pyright: ignore[reportReturnType] - its fault

    def item(self, line: bytes, number: int, file: str) -> Recorded:
        try:
            return self.event(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return Unreadable(file=file, line=number, reason="?")

    def read(self, stream: BinaryIO, file: str) -> Iterator[Recorded]:
        for number, line in enumerate(self.lines(stream), 1):
            yield self.item(line, number, file)


class Trailing(Honest):
    """Leaves a session open that its recording leaves open."""

    def read(self, stream: BinaryIO, file: str) -> Iterator[Recorded]:
        for number, line in enumerate(self.lines(stream), 1):
            if line != HEADER and line.strip():
                yield self.item(line, number, file)


class Backwards(Honest):
    def lines(self, stream: BinaryIO) -> Iterator[bytes]:
        yield from reversed(list(stream))


class Trusting(Honest):
    def item(self, line: bytes, number: int, file: str) -> Recorded:
        item = super().item(line, number, file)
        try:
            return self.event(line) if isinstance(item, Unreadable) else item
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return item


class Stopping(Honest):
    def read(self, stream: BinaryIO, file: str) -> Iterator[Recorded]:
        for item in super().read(stream, file):
            yield item
            if isinstance(item, Unreadable):
                return


class CountingFromZero(Honest):
    def item(self, line: bytes, number: int, file: str) -> Recorded:
        return super().item(line, number - 1, file)


class Hoarding(Honest):
    def read(self, stream: BinaryIO, file: str) -> Iterator[Recorded]:
        yield from list(super().read(stream, file))


class Circling(Honest):
    """Leaves what only the collector frees."""

    def item(self, line: bytes, number: int, file: str) -> Recorded:
        held: list[object] = [bytes(1_000)]
        held.append(held)
        return super().item(line, number, file)


def _on(factory: Callable[[], Reader], long: Callable[[int], bytes] | None = _long) -> ReaderFixture:
    return ReaderFixture(factory=factory, samples=SAMPLES, foreign=FOREIGN, long=long)


MUTANTS: dict[str, dict[str, ReaderFixture]] = {
    "well_formed": {"two words": _on(Unspeakable), "no samples": ReaderFixture(factory=Honest, samples={})},
    "detects": {"claims another's": _on(Guessing), "now so, now so": _on(Moody), "raises": _on(Fragile)},
    "reads": {"reports what is whole": _on(HalfBlind), "another way each time": _on(Numbering)},
    "total": {"raises": _on(Raising)},
    "well_formed_items": {
        "no session": _on(Nameless),
        "no reason": _on(Reasonless),
        "cannot be written": _on(Unwritable),
        "no event": _on(Passing),
    },
    "ends_sessions": {"leaves it open": _on(Trailing)},
    "ordered": {"from the end": _on(Backwards)},
    "refuses_own_events": {"trusts": _on(Trusting)},
    "goes_on": {"stops": _on(Stopping), "another line": _on(CountingFromZero), "nothing to see": _on(Honest, None)},
    "bounded": {"reads all first": _on(Hoarding), "leaves cycles": _on(Circling), "nothing to see": _on(Honest, None)},
}
CASES = [(law, how) for law, mutants in MUTANTS.items() for how in mutants]


@pytest.mark.parametrize(("law", "how"), CASES, ids=[f"{law}: {how}" for law, how in CASES])
def test_a_law_catches_who_breaks_it(law: str, how: str) -> None:
    (check,) = [check for check in CHECKS if name_of(check) == law]
    with pytest.raises(AssertionError, match=f"breaks the law '{law}'.*To see it again: "):
        check(MUTANTS[law][how])


def test_no_law_is_without_its_mutant() -> None:
    assert list(MUTANTS) == [name_of(check) for check in CHECKS]


def test_who_breaks_nothing_passes() -> None:
    check_reader(Honest, SAMPLES, foreign=FOREIGN, long=_long)
