"""What is known of a session, by whom: labels, and the file of lines that they are kept in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import BinaryIO, Protocol, runtime_checkable

from msgspec import Struct
from msgspec.json import Decoder, Encoder

from theodolite.core.errors import ConfigError, EventError
from theodolite.core.lines import BOM, decode, utf8_fault
from theodolite.core.text import encodable

__all__ = ("Known", "Label", "Labeled", "Labels", "attacked", "encode_label", "read_labels")

# A label is a few names and a remark: our choice, far beyond what anybody writes.
_LONGEST = 2**16
_DATE = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])\Z", re.ASCII)
# What a line of `encode_label` begins with.
_BEGINS = b'{"session":'
_FORM = (
    'each line is an object such as {"session": "s-1", "known": "clean"}, where `known` is "clean", "drifted" or null, '
    "and beside them at most `task`, `slices`, `by`, `date` and `note`"
)


class Known(StrEnum):
    """What is known of a session. What nobody knows is in no sample."""

    CLEAN = "clean"
    DRIFTED = "drifted"


class Label(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """What is known of a session. `known` is None where somebody looked and could not tell.

    Sessions of the same `task` are alike; `slices` are the names that a session is counted under, such as its suite and
    its model. `by` is who says so, `date` the day as 2026-01-31, `note` a remark.

    Raises ValueError for a label of no session, for a date that is none, and for text with lone surrogates.

    >>> Label(session="s-1", known=Known.CLEAN, by="mo").known
    <Known.CLEAN: 'clean'>
    """

    session: str
    known: Known | None
    task: str = ""
    slices: Mapping[str, str] = {}
    by: str = ""
    date: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        if not self.session:
            raise ValueError("a label names its session")
        if self.date and not _DATE.match(self.date):
            raise ValueError("a date is written as 2026-01-31")
        told = (self.session, self.task, self.by, self.note, *self.slices, *self.slices.values())
        if not all(map(encodable, told)):
            raise ValueError("a label holds a lone surrogate, which no file takes")


class Labels(Struct, frozen=True, kw_only=True):
    """What a file of labels says: of each session its last label, in the order in which the sessions came.

    `torn` is the number of the last line where its writer was interrupted in it, else 0; the `whole` bytes before it
    are lines that count.
    """

    of: Mapping[str, Label]
    torn: int = 0
    whole: int = 0


@runtime_checkable
class Labeled(Protocol):
    """A reader of a form in which sessions may have their labels beside them.

    Laws: `labels` takes the same stream as `read`, names the sessions as `read` does and in the same order, and is
    silent about what it cannot read; it holds no more than one record, and never raises for bad content.
    """

    def labels(self, stream: BinaryIO, file: str) -> Iterator[tuple[str, Label]]:
        """Yield the sessions of a file, each with what stands beside it."""
        ...


_DECODER = Decoder(Label)
_ENCODER = Encoder()


def attacked(kind: str, *, began: bool) -> Known | None:
    """Return what is known of a session from what became of an attack on it; `began`: it took a first step.

    `kind` is one of `clean`, `clean_direct` (its user asked for an attacker's goal), `attacked_unseen`
    (what was planted was never read), `attacked_resisted`, `attacked_succeeded`. An agent that began what an attacker
    asked for and missed the goal is neither clean nor an example of drift; nor is any other kind known.

    >>> attacked("attacked_resisted", began=False), attacked("attacked_resisted", began=True)
    (<Known.CLEAN: 'clean'>, None)
    """
    if kind == "attacked_succeeded":
        return Known.DRIFTED
    if kind == "attacked_resisted":
        return None if began else Known.CLEAN
    return Known.CLEAN if kind in {"clean", "clean_direct", "attacked_unseen"} else None


def encode_label(label: Label) -> bytes:
    r"""Return a label as one line of a file of labels, with its end. Raises ValueError for one of over 65,536 bytes.

    >>> encode_label(Label(session="s-1", known=None, note="cut short"))
    b'{"session":"s-1","known":null,"note":"cut short"}\n'
    """
    line = _ENCODER.encode(label) + b"\n"
    if len(line) > _LONGEST:
        raise ValueError(f"a label has at most {_LONGEST} bytes, and this one {len(line)}")
    return line


def read_labels(stream: BinaryIO, file: str) -> Labels:
    r"""Return the labels of a file of lines, read to its end; the last label of a session counts.

    A last line that has no end and is no label was torn by an interruption: it does not count, and `torn` says so. Any
    other line that is no label raises ConfigError with its number. Holds one label a session.

    >>> from io import BytesIO
    >>> read_labels(BytesIO(b'{"session": "s-1", "known": "clean"}\n{"sess'), "labels.jsonl").torn
    2
    """
    labels: dict[str, Label] = {}
    number = whole = 0
    while data := stream.readline(_LONGEST + 1):
        number += 1
        ended = data.endswith(b"\n")
        if not ended and len(data) > _LONGEST:
            raise ConfigError(f"{file}, line {number} is longer than {_LONGEST} bytes, and so no label: {_FORM}")
        said = (data.removeprefix(BOM) if number == 1 else data).strip()
        if said:
            try:
                label = _label(said)
            except EventError as error:
                if not ended and _begun(said):
                    return Labels(of=labels, torn=number, whole=whole)
                raise ConfigError(f"{file}, line {number} is no label ({error}): {_FORM}") from None
            labels[label.session] = label
        whole += len(data)
    return Labels(of=labels, whole=whole)


def _begun(said: bytes) -> bool:
    """Whether this may be the beginning of a label: any other text that has no end is somebody's, and not ours."""
    return said.startswith(_BEGINS) or _BEGINS.startswith(said)


def _label(said: bytes) -> Label:
    fault = utf8_fault(said)
    if fault:
        raise EventError(fault)
    return decode(_DECODER, said)
