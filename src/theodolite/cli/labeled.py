"""The labeled sessions of a dataset, whole, each with its place and its label."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from theodolite.cli.parallel import Whole, pieces
from theodolite.cli.progress import Progress
from theodolite.cli.recordings import Recordings
from theodolite.cli.sampling import Piece
from theodolite.core.errors import ConfigError
from theodolite.core.labels import Known, Label, read_labels
from theodolite.core.reader import Reader, Unreadable
from theodolite.core.text import printable
from theodolite.readers.detection import open_labels

__all__ = ("Dataset", "hash_of", "labels_in")

# Bytes of a hash of a session: of a million of them two that differ are taken for one with a chance of 2 ** -89.
_DIGEST = 16
# Of a file that is hashed at a time.
_CHUNK = 2**20


def labels_in(files: Iterable[Path]) -> dict[str, Label]:
    """Return the labels of some files of labels, each session's last. Raises ConfigError for a file that is none."""
    found: dict[str, Label] = {}
    for file in files:
        try:
            with file.open("rb") as stream:
                read = read_labels(stream, printable(str(file)))
        except OSError as error:
            raise ConfigError(f"--labels {file}: cannot be read ({error.strerror}): check its name") from error
        if read.torn:
            raise ConfigError(
                f"{file}, line {read.torn} was cut short by an interruption: `theodolite dataset label` on it mends it"
            )
        found.update(read.of)
    return found


def hash_of(files: Iterable[Path]) -> str:
    """Return a hash of what files hold, one after the other. Raises ConfigError for one that cannot be read."""
    whole = hashlib.sha256()
    for file in files:
        if not file.is_file():
            raise ConfigError(f"{file} is no regular file: a dataset is read more than once, so write it to one first")
        one = hashlib.sha256()
        try:
            with file.open("rb") as stream:
                while chunk := stream.read(_CHUNK):
                    one.update(chunk)
        except OSError as error:
            raise ConfigError(f"{file} cannot be read ({error.strerror}): check its name and rights") from error
        whole.update(one.digest())
    return whole.hexdigest()


class Dataset:
    """Recordings with what is known of their sessions.

    A label of `labels` goes before one that stands in the recording; where there is neither, a session is clean if all
    are `known_good`. `counts` has how many there are of each kind as far as they were read, `unread` counts parts
    that could not be read; `copies` sessions that were there already, under the same id in every word, and are left
    out. With `marked` a session of which nobody has said anything is yielded too: whoever replays it
    sees whether its findings are marked as false alarms, and counts it. State: the ids of all sessions. Cost: a session
    is held whole until it ends.
    """

    def __init__(
        self,
        files: Sequence[Path],
        readers: Sequence[Reader],
        labels: Mapping[str, Label],
        *,
        reader: str | None = None,
        known_good: bool = False,
        marked: bool = False,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.unread = self.copies = 0
        self.labels = labels
        self.met: set[str] = set()
        self._held = Recordings(files, readers, reader=reader)
        self._readers = readers
        self._reader = reader
        self._known_good = known_good
        self._marked = marked
        self._seen: set[bytes] = set()

    @property
    def files(self) -> tuple[Path, ...]:
        """The recordings."""
        return self._held.files

    def pieces(self, done: Collection[tuple[int, int]], progress: Progress) -> Iterator[Piece]:
        """Yield the sessions that have a label, or may be marked, and are not done, in order; show how far it is.

        Raises ConfigError for a file of an unknown form.
        """
        for number, file in enumerate(self._held.files):
            beside = _Beside(open_labels(file, self._readers, name=self._reader))
            for place, whole in enumerate(pieces(progress.counting(self._held.read(file, progress.reached)))):
                if isinstance(whole, Unreadable):
                    self.unread += whole.parts
                    continue
                same = _content(whole)
                copy = same + self._held.given(whole.session).encode("utf-8", "surrogatepass")
                copy = hashlib.blake2b(copy, digest_size=_DIGEST).digest()
                if copy in self._seen:
                    self.copies += 1
                    continue
                self._seen.add(copy)
                label, unsaid = self._label(whole.session, beside, same)
                if unsaid and self._marked:
                    if (number, place) not in done:
                        label = label or Label(session=whole.session, known=None)
                        yield Piece(whole, (number, place), label, unlabeled=True)
                    continue
                self.counts["unlabeled" if unsaid or label is None else str(label.known or "unknown")] += 1
                if label is not None and label.known is not None and (number, place) not in done:
                    yield Piece(whole, (number, place), label)
            progress.filed()

    def _label(self, session: str, beside: _Beside, same: bytes) -> tuple[Label | None, bool]:
        """Return the label of a session, and whether nobody has said what it is.

        Sessions that are the same in every word but their id are taken to be of one task.
        """
        label, unsaid = self._said(session, beside)
        if label is not None and not label.task:
            label = replace(label, task=f"content {same.hex()}")
        return label, unsaid

    def _said(self, session: str, beside: _Beside) -> tuple[Label | None, bool]:
        given, raw = self.labels.get(session), self._held.given(session)
        own = beside.of(raw)
        if given is not None:
            self.met.add(session)
        elif raw in self.labels and self._held.renamed(session):
            # Somebody said what a session of that id is, and there are several: nobody knows which was meant.
            return Label(session=session, known=None, slices={} if own is None else own.slices), False
        if given is not None and own is not None:
            # Who looked says what it is; what it counts among the data know.
            slices = {**own.slices, **given.slices}
            return Label(session=session, known=given.known, task=given.task or own.task, slices=slices), False
        # What counts it among others stands also beside a session that nobody has said anything of.
        unsaid = given is None and (own is None or (own.known is None and "kind" not in own.slices))
        if unsaid and self._known_good:
            return replace(own or Label(session=session, known=None), known=Known.CLEAN), False
        return given or own, unsaid


def _content(whole: Whole) -> bytes:
    """Return a hash of all of a session but its id."""
    told = b",".join(whole.items).replace(msgspec.json.encode(whole.session), b'""')
    return hashlib.blake2b(told, digest_size=_DIGEST).digest()


class _Beside:
    """Labels that stand in a recording, taken as its sessions come to their end; those before are held."""

    def __init__(self, labels: Iterator[tuple[str, Label]]) -> None:
        self._labels = labels
        self._held: dict[str, Label] = {}

    def of(self, session: str) -> Label | None:
        """Return the label of a session, by the id that it has in the file, if it has one."""
        if session in self._held:
            return self._held.pop(session)
        for found, label in self._labels:
            if found == session:
                return label
            self._held[found] = label
        return None
