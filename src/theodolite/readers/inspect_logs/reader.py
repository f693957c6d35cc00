"""The reader of logs that Inspect writes: `.eval` archives and `.json` documents."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, TypeVar

from msgspec import DecodeError, Raw, UnsetType
from msgspec.json import Decoder

from theodolite.core.errors import EventError
from theodolite.core.labels import Known, Label
from theodolite.core.lines import BOM, MAX_RECORD, Line, decode, first_keys, lines, session_name, utf8_fault
from theodolite.core.reader import Recorded, Unreadable
from theodolite.readers.conversations.conversation import Conversation
from theodolite.readers.inspect_logs import form
from theodolite.readers.inspect_logs.archive import MAGIC, first_name, members
from theodolite.readers.inspect_logs.document import document
from theodolite.readers.inspect_logs.samples import tell

__all__ = ("InspectLogs",)

_START, _SAMPLES = "_journal/start.json", "samples/"
_ROW = Decoder(Raw)

_T = TypeVar("_T")


class _Found(NamedTuple):
    """A sample as it stands in a log, with the run that it is of, or why there is none."""

    run: form.Eval
    place: str
    line: int
    data: bytes
    fault: str = ""


class InspectLogs:
    """Reads each sample of a log as a session, named by the ids of its run and of itself and by its epoch.

    The task is the agent, since its solver and its tools are what makes one; its model stands in ModelCalled. A sample
    that an error ended is read as far as it came. An archive is read as it comes, its journal first, as Inspect writes
    it; what a member unpacks to is bounded. Documents may stand one a line.
    """

    name = "inspect-logs"

    def detects(self, head: bytes) -> bool:
        """Whether an archive that begins with a run, or an object with version, status and eval, begins here."""
        if head.startswith(MAGIC):
            first = first_name(head)
            return first == _START or first.startswith(_SAMPLES)
        return first_keys(head) >= {"version", "status", "eval"}

    def read(self, stream: BinaryIO, file: str) -> Iterator[Recorded]:
        """Yield the events of each sample. Holds what stands before the samples, and one sample."""
        for found in _found(stream):
            sample = _sample(found)
            if isinstance(sample, str):
                yield Unreadable(file=file, line=found.line, reason=f"{found.place}: {sample}".removeprefix(": "))
                continue
            under = Conversation(_session(found.run, sample, file), file, agent=found.run.task or "")
            tell(under, sample, found.run, found.line, found.place)
            yield from under.take()

    def labels(self, stream: BinaryIO, file: str) -> Iterator[tuple[str, Label]]:
        """Yield the sessions of a log, each with what its metadata say: `theodolite_label` is "clean" or "drifted".

        Where they say nothing, a score of that name may. Inspect itself knows nothing of drift. Holds one sample.
        """
        for found in _found(stream):
            sample = _sample(found)
            if not isinstance(sample, str):
                session = _session(found.run, sample, file)
                yield session, _label(found.run, sample, session)


def _found(stream: BinaryIO) -> Iterator[_Found]:
    """Yield the samples of a log of either kind, or of documents one a line."""
    begun = stream.read(len(MAGIC))
    if begun == MAGIC:
        yield from _archived(stream)
        return
    first = begun if b"\n" in begun else begun + stream.readline(MAX_RECORD)
    if not (first.endswith(b"\n") and _whole(first.removeprefix(BOM))):
        yield from _documented(stream, first, 1)
        return
    yield from _documented(io.BytesIO(), first, 1)
    for line in lines(stream, ""):
        number = line[0] + 1 if isinstance(line, Line) else line.line + 1
        if isinstance(line, Line) and _whole(line.data):
            yield from _documented(io.BytesIO(), line.data, number)
        else:
            yield _Found(form.Eval(), "", number, b"", "no log" if isinstance(line, Line) else line.reason)


def _whole(line: bytes) -> bool:
    """Whether a line is an object by itself."""
    try:
        return line.lstrip().startswith(b"{") and bool(_ROW.decode(line))
    except (DecodeError, RecursionError):
        return False


def _archived(stream: BinaryIO) -> Iterator[_Found]:
    run = form.Eval()
    for member in members(stream, _wanted):
        place = f"member {member.number} of the archive"
        if member.fault or member.name != _START:
            yield _Found(run, place, 0, member.data, member.fault)
            continue
        try:
            run = decode(form.HEAD, member.data).eval
        except EventError as error:
            yield _Found(run, place, 0, b"", str(error))


def _wanted(name: str) -> bool:
    return name == _START or (name.startswith(_SAMPLES) and name.endswith(".json"))


def _documented(stream: BinaryIO, begun: bytes, line: int) -> Iterator[_Found]:
    """Yield the samples of a document that begins on a line."""
    parts = document(stream, begun)
    run = form.Eval()
    fault = parts.fault or utf8_fault(parts.head)
    try:
        run = run if fault else decode(form.HEAD, parts.head).eval
    except EventError as error:
        fault = str(error)
    if fault:
        yield _Found(run, "", line, b"", fault)
    for number, piece in enumerate(parts.samples):
        yield _Found(run, f"samples[{number}]", line + piece.line - 1, piece.data, piece.reason)


def _sample(found: _Found) -> form.Sample | str:
    """Return a sample, or why there is none."""
    fault = found.fault or utf8_fault(found.data)
    try:
        return fault or decode(form.SAMPLE, found.data)
    except EventError as error:
        return str(error)


def _session(run: form.Eval, sample: form.Sample, file: str) -> str:
    return f"{run.eval_id or run.run_id or session_name(file)}/{sample.id}/{sample.epoch}"


def _label(run: form.Eval, sample: form.Sample, session: str) -> Label:
    told = {"suite": run.task, "model": run.model}
    return Label(
        session=session,
        known=_known(sample),
        task=f"{run.task}/{sample.id}" if run.task else "",
        slices={name: value for name, value in told.items() if value},
    )


def _known(sample: form.Sample) -> Known | None:
    said = _decoded(form.LABEL, sample.metadata)
    value = None if said is None else said.theodolite_label
    if value is None:
        scores = _decoded(form.SCORES, sample.scores)
        score = None if scores is None else scores.theodolite_label
        value = None if score is None else score.value
    return Known(value) if isinstance(value, str) and value in set(Known) else None


def _decoded(decoder: Decoder[_T], data: Raw | UnsetType) -> _T | None:
    """Return a value, None where there is none or it is of another form: what is wrong with a label is no fault."""
    try:
        return None if isinstance(data, UnsetType) else decode(decoder, data)
    except EventError:
        return None
