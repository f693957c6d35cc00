"""Verify a bundle of evidence, with nothing but the standard library of Python 3.8 or newer.

Recomputes the digest of every file and of every payload, every link between records and between sessions, every
session's end, and with the key every seal. Changes nothing, asks no network, runs nothing that the bundle holds.

Exit status: 0 nothing is wrong, 1 something is, 2 this is no bundle as it was written, or it or the key cannot be read.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import hmac
import json
import re
import struct
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, TypeGuard

    Row = dict[str, Any]  # of JSON: `has` looks at it before anybody else does

__all__ = (
    "Archive",
    "Bundle",
    "Check",
    "NotABundleError",
    "Number",
    "canonical",
    "counts",
    "digest",
    "has",
    "is_list",
    "is_object",
    "main",
    "parsed",
    "raw",
    "sealed",
    "shown",
    "told",
)

FORM = 1
MANIFEST, SEAL, HEADS, RECORDS, REGISTRY = "manifest.json", "seal.txt", "heads.jsonl", "records.jsonl", "registry.json"
NAME = re.compile(r"[\w.-]+", re.ASCII)
SEALED = re.compile(rb"sha256 ([0-9a-f]{64})\nhmac-sha256 ([0-9a-f]{64}|-)\n")
SALT = re.compile(r"[0-9a-f]{32}")
CHUNK = 1 << 20
NEXT = "it was cut, added to, encrypted or packed anew; ask for it as it was, or unpack it and verify the folder"
FILES = 16  # in a bundle, at most: twice as many as there are
LONGEST = 1 << 23  # bytes of a manifest: the names of a hundred thousand sessions
DIGITS = 20  # of a whole number that are looked at: one that has more is not what it says, and no bundle has one
# What is said of each file, before it and in the directory: version 4.5, no flags, deflated, sizes of eight bytes; and
# made on a Unix, no comment, the first disk, no attributes but those of a regular file that its owner may write.
ZIPPED, ATTRIBUTES = (45, 0, 8, 1, 16), ((3 << 8 | 45, 45, 0, 8), (0, 0, 0, 0o100644 << 16))
LARGE, NONE = (1 << 31) - 1, (1 << 32) - 1  # beyond LARGE a zip file says NONE, and the number in another place
LISTED = 100  # problems that are shown: who has more has one cause for them all

KEYED = """\
With the key, which only the operator has, this shows that nothing in the bundle was changed, removed, reordered or
added without it. Whoever has the key can make all of it anew.
Not shown: older copies of heads and registry that were put back in the store before the bundle was made. Compare with
heads that were kept elsewhere: theodolite store verify --heads.
"""
UNKEYED = """\
Without the key this shows that nothing was changed, removed, reordered or added by chance, or by somebody who did not
make the rest of it fit.
Not shown: a store or a bundle that was computed anew after a change; a cut tail or a removed session with heads that
were made to fit; payloads erased by another hand. Give --key-file, or compare the digest of the bundle with the one
that the operator told you by another way.
"""


class Number(str):
    """A number with a fraction or an exponent, as it is written: the writing is what was hashed."""

    __slots__ = ()


HEAD = {"session": (str,), "position": (int,), "link": (str,), "n": (int,), "hash": (str,), "seal": (str,)}
ENDS = {"count": (int,), "link": (str,), "seal": (str,)}
RECORD = {
    "session": (str,),
    "n": (int,),
    "at": (Number,),
    "kind": (str,),
    "codes": (list,),
    "payload": (str, dict, type(None)),
    "salt": (str, type(None)),
    "digest": (str,),
    "previous": (str,),
    "hash": (str,),
}


class NotABundleError(Exception):
    """What was named is no bundle, or cannot be read."""


def canonical(value: object) -> str:
    """Return a value in the one form of JSON that is hashed."""
    if isinstance(value, Number):
        return value
    if is_list(value):
        return "[" + ",".join([canonical(item) for item in value]) + "]"
    if is_object(value):
        return "{" + ",".join([f"{canonical(name)}:{canonical(item)}" for name, item in value.items()]) + "}"
    return json.dumps(value, ensure_ascii=False)


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Tell whether a value is a list of JSON, or what becomes one."""
    return isinstance(value, (list, tuple))


def is_object(value: object) -> TypeGuard[dict[str, object]]:
    """Tell whether a value is an object of JSON."""
    return isinstance(value, dict)


def digest(*parts: object) -> str:
    """Return the SHA-256 of a list."""
    return hashlib.sha256(canonical(parts).encode()).hexdigest()


def parsed(line: bytes) -> object:
    """Return what a line of JSON says, or None where it is not in the form that is hashed."""
    try:
        text = line.decode()
        value: object = json.loads(text, parse_float=Number, parse_int=lambda digits: int(digits[:DIGITS]))
        return value if canonical(value) == text else None
    except (ValueError, RecursionError):
        return None


class Archive:
    """A bundle in a zip file, which is written in one way: the headers of its files tell every byte behind them.

    The format is that of PKWARE's APPNOTE.TXT, section 4.3. Raises NotABundleError where anything else stands there.
    """

    def __init__(self, place: Path) -> None:
        if not place.is_file():  # a pipe would never end
            raise NotABundleError(f"{place} is no file: give the bundle, or the folder it was unpacked into")
        self.place, start = place, 0
        self.entries: dict[str, tuple[int, int, int, int]] = {}
        self.listed: list[bytes] = []
        try:
            while self.at(start, 4) == b"PK\3\4" and len(self.entries) < FILES:
                start = self.entry(start)
        except (ValueError, struct.error) as error:
            raise NotABundleError(f"{place}: at byte {start} stands what is no file of a bundle: {NEXT}") from error
        end, count = b"".join(self.listed), len(self.entries)
        size = len(end)
        if start > LARGE:
            end += struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, start)
            end += struct.pack("<4sLQL", b"PK\6\7", 0, start + size, 1)
        end += struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, size, min(start, NONE), 0)
        if self.at(start, len(end) + 1) != end:
            raise NotABundleError(f"{place}: behind byte {start} stands what no bundle has there: {NEXT}")

    def at(self, place: int, size: int) -> bytes:
        """Return bytes of the zip file."""
        with self.place.open("rb") as file:
            file.seek(place)
            return file.read(size)

    def entry(self, start: int) -> int:
        """Note the file whose header begins there, and return where it ends. Raises ValueError for another's."""
        fields = struct.unpack("<4s5H3L2H", self.at(start, 30))
        version, flags, method, time, date, crc, packed, size, length, more = fields[1:]
        name = self.at(start + 30, length).decode("ascii")
        tag, width, real, inside = struct.unpack("<2H2Q", self.at(start + 30 + length, more))
        plain = (version, flags, method, tag, width) == ZIPPED and (packed, size) in ((NONE, NONE), (inside, real))
        if not plain or name in self.entries or not NAME.fullmatch(name):
            raise ValueError(name)
        large = max(real, inside) > LARGE
        numbers = [real, inside] * large + [start] * (start > LARGE)
        extra = struct.pack(f"<2H{len(numbers)}Q", 1, 8 * len(numbers), *numbers) if numbers else b""
        sizes = (NONE, NONE) if large else (inside, real)
        told = (*ATTRIBUTES[0], time, date, crc, *sizes, length, len(extra), *ATTRIBUTES[1])
        self.listed.append(struct.pack("<4s6H3L5H2L", b"PK\1\2", *told, NONE if start > LARGE else start))
        self.listed.append(name.encode() + extra)
        begin = start + 30 + length + more
        self.entries[name] = (begin, begin + inside, real, crc)
        return int(begin + inside)

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield what a file holds. Raises ValueError where it is damaged, or not all that is in its place."""
        place, end, size, crc = self.entries[name]
        inflating, checksum = zlib.decompressobj(-zlib.MAX_WBITS), 0
        packed = chunk = b"-"
        while not inflating.eof and (packed or chunk):
            packed = inflating.unconsumed_tail or self.at(place, min(CHUNK, end - place))
            place += 0 if inflating.unconsumed_tail else len(packed)
            chunk = inflating.decompress(packed, CHUNK)
            checksum, size = zlib.crc32(chunk, checksum), size - len(chunk)
            yield chunk
        if not inflating.eof or inflating.unused_data or (place, size, checksum) != (end, 0, crc):
            raise ValueError(name)


class Bundle:
    """The files of a bundle, in a zip file or in a folder. Of none is more read than `limits` says."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.archive = None if place.is_dir() else Archive(place)
        self.limits = {MANIFEST: LONGEST, SEAL: CHUNK}
        self.damaged: set[str] = set()
        if MANIFEST not in self.names():
            raise NotABundleError(f"{place} holds no {MANIFEST}: give the bundle, or the folder it was unpacked into")

    def names(self) -> list[str]:
        """Return the names of all files."""
        return [*self.archive.entries] if self.archive else [p.name for p in self.place.iterdir() if p.is_file()]

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield what a file holds. Raises OSError, KeyError, ValueError and zlib.error where it cannot be read."""
        if self.archive is not None:
            yield from self.archive.chunks(name)
        elif (self.place / name).is_file():  # a pipe would never end
            with (self.place / name).open("rb") as file:
                yield from iter(lambda: file.read(CHUNK), b"")

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield what a file holds, as far as it can be read, up to its limit; note where that is not all of it."""
        left = max(0, self.limits.get(name, 0))
        try:
            for chunk in self.pieces(name):
                yield chunk[:left]
                left -= len(chunk)
                if left < 0:
                    break
            if left < 0 or (left and name not in {MANIFEST, SEAL}):
                self.damaged.add(name)
        except (KeyError, OSError, ValueError, zlib.error):
            self.damaged.add(name)

    def read(self, name: str) -> bytes:
        """Return what a file holds."""
        return b"".join(self.chunks(name))

    def lines(self, name: str) -> Iterator[bytes]:
        """Yield the lines of a file, without their ends; one that has none is given with a mark that is no JSON."""
        line: list[bytes] = []
        for chunk in self.chunks(name):
            first, *others = chunk.split(b"\n")
            line.append(first)
            for other in others:
                yield b"".join(line)
                line = [other]
        if any(line):
            yield b"".join(line) + b" without its end"


class Check:
    """What is wrong with a bundle. `run` looks at everything; `problems` says what was found."""

    def __init__(self, bundle: Bundle, key: bytes | None) -> None:
        self.bundle = bundle
        self.key = key
        self.problems: list[str] = []
        self.about: Row = {}
        self.digest = ""
        self.heads: dict[str, Row] = {}
        self.ended: set[str] = set()
        self.records = self.erased = 0
        self.last: Row | None = None
        self.gone = 0  # payloads of this session that are gone, with no erasure behind them yet

    def wrong(self, where: str, what: str) -> None:
        """Keep a problem."""
        self.problems.append(f"{where}: {what}")

    def run(self) -> None:
        """Check all there is."""
        self.files()
        self.ends()
        for number, line in enumerate(self.bundle.lines(RECORDS), 1):
            row = parsed(line)
            if has(row, RECORD):
                self.record(row)
            else:
                self.wrong(f"{RECORDS}, line {number}", "it is no record as a bundle holds them")
        self.end()
        self.complete()

    def manifest(self) -> dict[str, object]:
        """Check the manifest against its seal, and return the digests that it names."""
        manifest = self.bundle.read(MANIFEST)
        found = SEALED.fullmatch(self.bundle.read(SEAL))
        told, seal = (found[1].decode(), found[2].decode()) if found else ("", "")
        self.digest = hashlib.sha256(manifest).hexdigest()
        if told != hashlib.sha256(manifest + seal.encode()).hexdigest():
            self.wrong(MANIFEST, f"it is not the one that {SEAL} was made for")
        if self.key is not None and not sealed(seal, self.key, "bundle", self.digest):
            self.wrong(MANIFEST, "it is not sealed with this key")
        row = parsed(manifest)
        about = row if is_object(row) else {}
        files, sizes = about.get("files"), about.get("sizes")
        if about.get("bundle") != FORM or not is_object(files) or not is_object(sizes) or len(files) > FILES:
            self.wrong(MANIFEST, f"it is no manifest of form {FORM}, which is all that this script knows")
            return {}
        self.about = about
        self.bundle.limits = {name: size for name in files if isinstance(size := sizes.get(name), int)}
        return files

    def files(self) -> None:
        """Check every file against the manifest."""
        files, names = self.manifest(), set(self.bundle.names())
        for name, told in files.items():
            if not NAME.fullmatch(name) or name not in names:
                self.wrong(ascii(name), "the manifest names it, and it is not there")
                continue
            hashed = hashlib.sha256()
            for chunk in self.bundle.chunks(name):
                hashed.update(chunk)
            if hashed.hexdigest() != told:
                self.wrong(name, "it is not the file that the manifest names")
        # A folder gathers files of its own, which nobody reads; a zip file does not.
        if self.bundle.archive is not None:
            for name in sorted(names - {MANIFEST, SEAL, *files}):
                self.wrong(ascii(name), "the manifest does not name it")
        for name in sorted(self.bundle.damaged):
            self.wrong(name, "it is damaged, or not as large as it is to be")

    def ends(self) -> None:
        """Check the heads of all sessions, their chain, and the registry at its end."""
        link, count = "", 0
        for line in self.bundle.lines(HEADS):
            head = parsed(line)
            if not has(head, HEAD):
                self.wrong(f"{HEADS}, line {count + 1}", "it is no head")
                continue
            name = head["session"]
            link = digest(name, link)
            if (head["position"], head["link"]) != (count, link) or name in self.heads:
                self.wrong(shown(name), "the chain of sessions is broken here: a session before it was removed")
            link, count = head["link"], count + 1
            self.heads[name] = head
            self.seal(shown(name), head, "head", "session", "position", "link", "n", "hash")
        registry = parsed(self.bundle.read(REGISTRY))
        if not has(registry, ENDS):
            self.wrong(REGISTRY, "the registry of sessions is gone")
            return
        if (registry["count"], registry["link"]) != (count, link):
            self.wrong(REGISTRY, f"it counts {registry['count']} sessions, and does not end with the last of {count}")
        self.seal(REGISTRY, registry, "registry", "count", "link")

    def seal(self, where: str, row: Row, kind: str, *names: str) -> None:
        """Check the seal of a head or of the registry, where there is a key."""
        if self.key is not None and not sealed(row["seal"], self.key, kind, *[row[name] for name in names]):
            self.wrong(where, "it is not sealed with this key")

    def record(self, row: Row) -> None:
        """Check one record against the one before it."""
        session, n = row["session"], row["n"]
        if self.last is None or self.last["session"] != session:
            self.end()
            if session in self.ended:
                self.wrong(shown(session), "its records stand in two places")
            self.last = None
        before, self.last = self.last, row
        self.records += 1
        where = f"{shown(session)}, record {n}"
        expected = (0, "") if before is None else (before["n"] + 1, before["hash"])
        if (n, row["previous"]) != expected:
            self.wrong(where, f"record {expected[0]} was expected here: removed, reordered or added")
        names = ("session", "n", "at", "kind", "codes", "digest", "previous")
        if digest(*[row[name] for name in names]) != row["hash"]:
            self.wrong(where, "the record was changed")
        self.payload(where, row)

    def payload(self, where: str, row: Row) -> None:
        """Check the payload of a record, and what an erasure says of those before it."""
        payload, salt = row["payload"], row["salt"]
        if payload is None and salt is None:
            self.erased += 1
            self.gone += 1
        elif payload is None or salt is None:
            self.wrong(where, "its salt is gone and its payload is not, or the other way round: no erasure leaves that")
        elif (
            not SALT.fullmatch(salt) or hashlib.sha256(bytes.fromhex(salt) + raw(payload)).hexdigest() != row["digest"]
        ):
            self.wrong(where, "the payload was changed")
        if row["kind"] == "erasure" and payload is not None:
            if not counts(raw(payload), self.gone, row["n"] - 1):
                self.wrong(where, f"of the payloads before it {self.gone} more are gone: its erasure says otherwise")
            self.gone = 0

    def end(self) -> None:
        """Check the end of the session that was read last."""
        if self.last is None:
            return
        session = self.last["session"]
        self.ended.add(session)
        if self.gone:
            self.wrong(shown(session), f"{self.gone} payloads are gone without an erasure behind them")
            self.gone = 0
        head = self.heads.get(session)
        if head is None:
            self.wrong(shown(session), "it has records but no head: its head was removed, or it was added")
        elif (head["n"], head["hash"]) != (self.last["n"], self.last["hash"]):
            self.wrong(shown(session), f"its head is record {head['n']}: the tail was cut or rewritten")

    def complete(self) -> None:
        """Check that every session is there that the bundle says it holds."""
        named = self.about.get("sessions")
        wanted = {str(name) for name in named} if is_list(named) else set(self.heads)
        for session in sorted(wanted ^ self.ended):
            self.wrong(shown(session), "its records were removed, or the manifest does not name it")
        if self.about and self.about.get("records") != self.records:
            self.wrong(MANIFEST, f"it counts {self.about.get('records')} records, and there are {self.records}")


def has(row: object, fields: Mapping[str, Sequence[type]]) -> TypeGuard[Row]:
    """Tell whether a row of JSON has these fields, in this order and of these types, and no others."""
    return is_object(row) and list(row) == [*fields] and all(type(row[name]) in fields[name] for name in fields)


def raw(payload: object) -> bytes:
    """Return the bytes of a payload: its text, or what stands in base64 where it is none."""
    if isinstance(payload, str):
        return payload.encode()
    if is_object(payload) and list(payload) == ["base64"]:
        try:
            return base64.b64decode(str(payload["base64"]), validate=True)
        except ValueError:
            return b""
    return b""


def counts(payload: bytes, payloads: int, through: int) -> bool:
    """Tell whether the payload of an erasure says that it took so many, and why, and nothing else."""
    said = parsed(payload)
    if not is_object(said):
        return False
    wanted: list[tuple[str, object]] = [("payloads", payloads), ("through", through)]
    if isinstance(said.get("reason"), str) and said["reason"]:
        wanted.append(("reason", said["reason"]))
    return list(said.items()) == wanted


def sealed(seal: str, key: bytes, *parts: object) -> bool:
    """Tell whether this is the HMAC-SHA256 of a list under the operator's key."""
    expected = hmac.new(key, canonical(parts).encode(), hashlib.sha256).hexdigest()
    return hmac.compare_digest(seal.encode(), expected.encode())


def shown(session: str) -> str:
    """Return the name of a session so that no terminal obeys it."""
    return f"session {session!a}"


def told(check: Check) -> Iterator[str]:
    """Yield, line by line, what was checked, what is wrong, and what that proves."""
    many = len(check.problems)
    state = "intact" if not many else f"{many} problem{'s' * (many != 1)}"
    yield f"{check.bundle.place}: {state}"
    yield f"  {len(check.ended)} sessions, {check.records} records, the payloads of {check.erased} of them erased"
    left = len(check.heads) - len(check.ended)
    if left > 0:
        yield f"  {left} more sessions are known by their heads alone: their records are not in this bundle"
    yield f"  seals: {'not checked, since no key was given' if check.key is None else 'checked with the key'}"
    yield f"  digest of the bundle: {check.digest}"
    for problem in check.problems[:LISTED]:
        yield f"  {problem}"
    if many > LISTED:
        yield f"  ... and {many - LISTED} more"
    yield ""
    yield from (UNKEYED if check.key is None else KEYED).splitlines()


def main(arguments: Sequence[str] | None = None) -> int:
    """Verify the bundle that the command line names, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    beside = Path(__file__).parent
    parser.add_argument("bundle", nargs="?", type=Path, default=beside, help="zip file or folder; default: this folder")
    parser.add_argument("--key-file", type=Path, help="the operator's key: checks the seals too")
    given = parser.parse_args(arguments)
    try:
        key = given.key_file.read_bytes().strip() if given.key_file is not None else None
        check = Check(Bundle(given.bundle), key)
        check.run()
    except (OSError, NotABundleError) as error:
        sys.stderr.write(f"error: {str(error)!a}\n")
        return 2
    sys.stdout.write("".join([f"{line}\n" for line in told(check)]).encode("ascii", "backslashreplace").decode())
    return 1 if check.problems else 0


if __name__ == "__main__":
    sys.exit(main())
