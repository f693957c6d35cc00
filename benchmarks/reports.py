"""What each form of a report costs: time, size and memory, by how many sessions there are.

    python benchmarks/reports.py [--short]

Every fourth session has a finding, and one in twenty is long. Each report is written by a process of its own; what the
interpreter and the sessions take of its memory is taken off. The reference is the JSON form, which alone may grow with
the sessions. Exits with 1 when another form is larger than it may be. `--short` leaves out the 10,000 sessions.
"""

from __future__ import annotations

import argparse
import io
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from tempfile import TemporaryFile
from typing import BinaryIO

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from timing import row

from theodolite.core.errors import MissingExtraError
from theodolite.detectors.trajectory.margin import MarginDetector
from theodolite.detectors.trajectory.shadow_memory import ShadowMemoryDetector
from theodolite.redactors.rules import RuleRedactor
from theodolite.reports.html.page import HTMLWriter
from theodolite.reports.json import JSONReport
from theodolite.reports.junit import JUnitWriter
from theodolite.reports.layout import counted, plain
from theodolite.reports.limits import LARGEST
from theodolite.reports.png import PNGWriter
from theodolite.reports.sarif import SarifWriter
from theodolite.reports.text import TextReport
from theodolite.reports.totals import Origin, Report, Run, Totals
from theodolite.reports.writer import WriterReport
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.replay import Sighting, replay
from theodolite.testing.sessions import clean_session, hijacked_session, stamped, synthetic_session

TIMES = (1, 100, 10_000)
LONG = 20  # one session in so many has 60 turns


def _text(stream: BinaryIO) -> Report:
    return TextReport(lambda blocks: stream.writelines(line.encode() for line in plain(blocks)))


FORMS: dict[str, Callable[[BinaryIO], Report]] = {
    "json": JSONReport,
    "text": _text,
    "html": lambda stream: WriterReport(HTMLWriter(stream)),
    "junit": lambda stream: WriterReport(JUnitWriter(stream)),
    "sarif": lambda stream: WriterReport(SarifWriter(stream)),
    "png": lambda stream: WriterReport(PNGWriter(stream)),
}


class Cost(Struct, frozen=True):
    """What one report took: milliseconds, bytes, and MB of memory beside what was there before."""

    milliseconds: float
    size: int
    memory: float


def judged() -> dict[str, Sighting]:
    """Return what the shipped detectors make of a session of each kind."""
    monitor = Monitor([MarginDetector(), ShadowMemoryDetector()], redactor=RuleRedactor())
    kinds = {"clean": clean_session(), "hijacked": hijacked_session(), "long": synthetic_session(60, seed=1)}
    events = [event for name, session in kinds.items() for event in stamped(session, session=name, agent="a-1")]
    return {item.session: item for item in replay(events, monitor) if isinstance(item, Sighting)}


def sightings(known: dict[str, Sighting], count: int) -> Iterator[Sighting]:
    """Yield that many sessions, each with a name of its own."""
    for place in range(count):
        kind = "hijacked" if place % 4 == 0 else "long" if place % LONG == 1 else "clean"
        yield replace(known[kind], session=f"s-{place}")


def _held() -> float:
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def measure(form: str, count: int) -> Cost:
    """Write one report in this process."""
    known = judged()
    totals, origin = Totals(), Origin(file="recordings/a.jsonl", reader="openai-chat")
    before = _held()
    with TemporaryFile() as stream:
        start = time.process_time()
        report = FORMS[form](stream)
        for item in sightings(known, count):
            totals.add(item, origin)
            report.add(item, origin)
        report.end(totals, Run(version="1.0"))
        milliseconds = (time.process_time() - start) * 1e3
        return Cost(milliseconds, stream.tell(), _held() - before)


def measured(form: str, count: int) -> Cost:
    """Write one report in a process of its own."""
    command = (sys.executable, __file__, "--form", form, "--count", str(count))
    done = subprocess.run(command, capture_output=True, check=True)  # noqa: S603 - our own code
    return msgspec.json.decode(done.stdout, type=Cost)


def main() -> int:
    """Print the figures; return 1 when a report is too large."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="leave out the 10,000 sessions")
    parser.add_argument("--form", choices=FORMS, help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.form:
        sys.stdout.buffer.write(msgspec.json.encode(measure(options.form, options.count)))
        return 0
    met = True
    for count in TIMES[:2] if options.short else TIMES:
        reference = measured("json", count)
        for form in FORMS:
            if form == "png" and not _draws():
                print("png: the extra is not installed")
                continue
            cost = measured(form, count)
            row(
                f"{form}, {counted(count, 'session')}",
                cost.milliseconds,
                "ms",
                ratio=cost.milliseconds / reference.milliseconds,
            )
            limit = None if form == "json" else LARGEST / 1e6
            met = row("  size", cost.size / 1e6, "MB", budget=limit) and met
            row("  memory", cost.memory, "MB")
    return int(not met)


def _draws() -> bool:
    try:
        PNGWriter(io.BytesIO())
    except MissingExtraError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
