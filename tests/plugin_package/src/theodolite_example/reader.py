"""A reader of logs that hold nothing but the calls of tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from theodolite.core.event import Channel, SessionEnded, Source, ToolCallProposed
from theodolite.core.reader import Recorded, Unreadable

__all__ = ("ToolCallLines",)

_HEADER = b"#tool-calls\n"


class _Line(msgspec.Struct):
    tool: str
    arguments: dict[str, object]


_LINE = msgspec.json.Decoder(_Line)


class ToolCallLines:
    """Reads one call a line under a header; a file is a session of its name."""

    name = "tool-calls"

    def detects(self, head: bytes) -> bool:
        """Whether the header stands here."""
        return head.startswith(_HEADER)

    def read(self, stream: BinaryIO, file: str) -> Iterator[Recorded]:
        """Yield the calls, and the end of the session."""
        for number, line in enumerate(stream, 1):
            if not line.strip() or line == _HEADER:
                continue
            try:
                call = _LINE.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                yield Unreadable(file=file, line=number, reason=f"no call: {type(error).__name__}", session=file)
                continue
            yield ToolCallProposed(
                session=file,
                tool=call.tool,
                arguments=call.arguments,
                channel=Channel.TOOL_CALL_OBJECT,
                source=Source.MODEL,
            )
        yield SessionEnded(session=file, channel=Channel.CONTROL, source=Source.SYSTEM)
