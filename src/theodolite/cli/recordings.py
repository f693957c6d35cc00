"""The files of a scan, read one after the other: their sessions are kept apart, and where each came from is known."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path, PurePath
from types import MappingProxyType

from msgspec.structs import replace

from theodolite.core.event import SessionEnded
from theodolite.core.lines import session_name
from theodolite.core.reader import Reader, Recorded, Unreadable
from theodolite.core.recording import HEADER
from theodolite.core.store import ReadableStore
from theodolite.core.text import printable
from theodolite.readers.detection import open_recording
from theodolite.reports.totals import Origin
from theodolite.runtime.replay import goes_on

__all__ = ("Recordings", "probed_before", "session_names")

# How a recording of our own begins, and one that is packed; what stands in a line that asks for a probe, or settles it.
_OWN, _PACKED = HEADER.partition(b",")[0], b"\x1f\x8b"
_ASKS, _SETTLES = b'"ProbeRequested"', b'"InquirySettled"'


class Recordings:
    """What the files of a scan hold; no two sessions have the same id.

    A session that its file does not name is named after the file, as `session_names` says. An id that comes again when
    its session is over, in the same file or another, gets the suffix `~2`, the next one `~3`. `reader` names the one
    reader to use. `kept` is where the scan keeps its evidence: sessions that it held before the scan are counted.

    State: the ids of all sessions read so far. Cost: a look-up an event; with `kept`, the head of each session is read.
    """

    def __init__(
        self,
        files: Sequence[Path],
        readers: Sequence[Reader],
        *,
        reader: str | None = None,
        kept: ReadableStore | None = None,
    ) -> None:
        self.files = tuple(files)
        self._readers = readers
        self._reader = reader
        self._kept = kept
        self._names = session_names(files)
        self._origins: dict[str, Origin] = {}
        self._times: Counter[str] = Counter()
        self._before: dict[str, int] = {}
        self._given: dict[str, str] = {}

    @property
    def continued(self) -> tuple[str, ...]:
        """The sessions that the store held before this scan."""
        return tuple(self._before)

    @property
    def records(self) -> int:
        """How many records the store got for the sessions of this scan. Raises StoreError."""
        if self._kept is None:
            return 0
        heads = (head for head in self._kept.heads() if head.session in self._origins)
        return sum(head.n + 1 - self._before.get(head.session, 0) for head in heads)

    @property
    def origins(self) -> Mapping[str, Origin]:
        """Where each session was read, in the order in which they began."""
        return MappingProxyType(self._origins)

    def origin(self, session: str) -> Origin:
        """Return where a session was read."""
        return self._origins.get(session, Origin())

    def given(self, session: str) -> str:
        """Return the id that a session has in its file."""
        return self._given.get(session, session)

    def renamed(self, session: str) -> bool:
        """Whether a session has a suffix, since its id was there already."""
        given = self._given.get(session)
        return given is not None and session.rpartition("~")[0] in {given, printable(given)}

    def read(self, file: Path, reached: Callable[[int], None] | None = None) -> Iterator[Recorded]:
        """Yield what a file holds; `reached` is told the bytes that were read of it.

        Raises ConfigError as `open_recording` does, and StoreError.
        """
        origin = Origin(file=printable(str(file)))

        def tell(reader: Reader) -> None:
            nonlocal origin
            origin = Origin(file=origin.file, reader=reader.name)

        names: dict[str, str] = {}
        ended: str | None = None
        for item in open_recording(file, self._readers, name=self._reader, told=tell, reached=reached):
            if ended is not None and not goes_on(ended, item):
                del names[ended]
                ended = None
            if isinstance(item, Unreadable):
                yield replace(item, session=names.get(item.session, ""))
                continue
            name = names.get(item.session)
            if name is None:
                name = names[item.session] = self._begin(item.session, file, origin)
            if isinstance(item, SessionEnded):
                ended = item.session
            yield item if name == item.session else replace(item, session=name)

    def _begin(self, session: str, file: Path, origin: Origin) -> str:
        """Return the id that a session has in this scan."""
        given, stem = session, session_name(origin.file)
        if session == stem or session.startswith(f"{stem}#"):
            session = self._names[file] + session[len(stem) :]
        name = session = printable(session)
        while name in self._origins:
            self._times[session] += 1
            name = f"{session}~{self._times[session] + 1}"
        self._origins[name] = origin
        if name != given:
            self._given[name] = given
        head = None if self._kept is None else self._kept.head(name)
        if head is not None:
            self._before[name] = head.n + 1
        return name


def probed_before(files: Iterable[Path]) -> int:
    """Return how many probes a session of these files was put at most while it was recorded; more if in doubt.

    Reads recordings of our own only, which alone hold any. What cannot be read is told by who reads it next.
    """
    return max(map(_probed_before, files), default=0)


def _probed_before(file: Path) -> int:
    asked = settled = 0
    # A pipe gives what it holds once.
    with suppress(OSError, EOFError, zlib.error), ExitStack() as stack:
        opened = stack.enter_context(file.open("rb")) if file.is_file() else io.BytesIO()
        packed = opened.read(len(_PACKED)) == _PACKED
        opened.seek(0)
        lines = gzip.GzipFile(fileobj=opened) if packed else opened
        if lines.readline(len(_OWN)) == _OWN:
            for line in lines:
                asked += _ASKS in line
                settled += _SETTLES in line
    return max(asked, settled)


def session_names(files: Iterable[Path]) -> dict[Path, str]:
    """Return for each file the name of a session that the file does not name.

    It is the file's name without its endings. Files that share it are told apart by their paths from the folder that
    holds them all, and where that is not enough by their endings too.

    >>> names = session_names([Path("logs/a/run.json"), Path("logs/b/run.json"), Path("logs/b/other.json")])
    >>> list(names.values())
    ['a/run', 'b/run', 'other']
    """
    alike: dict[str, list[Path]] = {}
    for file in files:
        alike.setdefault(session_name(printable(str(file))), []).append(file)
    names: dict[Path, str] = {}
    for stem, same in alike.items():
        names.update({same[0]: stem} if len(same) == 1 else _paths(stem, same))
    return names


def _paths(stem: str, files: Sequence[Path]) -> dict[Path, str]:
    whole = {file: PurePath(os.path.abspath(file)) for file in files}  # noqa: PTH100 - resolve() would follow links
    root = os.path.commonpath([path.parent for path in whole.values()])
    full = {file: path.relative_to(root) for file, path in whole.items()}
    short = {file: path.with_name(stem) for file, path in full.items()}
    times = Counter(short.values())
    return {file: printable((short if times[short[file]] == 1 else full)[file].as_posix()) for file in full}
