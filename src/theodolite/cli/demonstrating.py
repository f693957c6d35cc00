"""The demo: two sessions that come with the package, and what the instrument makes of them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path

import msgspec
from msgspec.structs import replace

from theodolite.cli.asking import of_recordings, with_model
from theodolite.cli.exits import FINDING, NOTHING, say
from theodolite.cli.output import write_blocks
from theodolite.cli.recordings import Recordings
from theodolite.config.models import PanelSettings
from theodolite.config.settings import Settings
from theodolite.config.wiring import wire
from theodolite.core.errors import ConfigError
from theodolite.core.policy import Outcome
from theodolite.reports.layout import Block, Heading, Paragraph, Span, Style, counted
from theodolite.reports.probes import DETECTOR, probe_lines
from theodolite.reports.session import session_blocks
from theodolite.reports.totals import Origin
from theodolite.runtime.replay import Sighting, replay

__all__ = ("NEXT", "save_sessions", "show_demo")

NEXT = (
    "theodolite demo --save demo",
    "theodolite scan demo --calls",
    "theodolite scan demo --format html --output demo.html",
    "theodolite explain fusion.call",
    "theodolite probe demo/hijacked.json --model openai:gpt-5.1 --estimate",
)
_EXPECTED = {"demo-clean": Outcome.CLEAN, "demo-hijacked": Outcome.FINDING}
# What only notes, and decides nothing, is left out: the demo is read in a minute.
_NOTING = ("answer", "goal_drift", "shadow_memory")
_SETTINGS = Settings(plugins=False, detectors={name: {"enabled": False} for name in _NOTING})
# A busy machine shall not turn the demo's answers into time-outs; they take some five seconds each on an idle one.
_PANEL = PanelSettings(timeout=120.0)
# Fixed, so that the demo asks the same questions each time: nothing here is worth protecting.
_SECRET = b"the demo has no secret to protect"

_INTRO = (
    "Two recorded sessions of an office assistant that pays an invoice for its user. In the second one, a mail that "
    "the assistant reads holds orders of its own: send the customers to a stranger, pay a stranger. It obeys, and says "
    "nothing of it. Below, ALARM counts as a finding; what is noted stands beside it and does not count."
)
_FINDING = (
    "Two calls whose arguments come from that mail, and from the file that it points to, and not from what the user "
    "asked for. No model was asked for it. The clean session reads mails too, and does what they are about, and nobody "
    "alarms. As installed an alarm asks a person to look and refuses nothing; with hold = true in the settings of a "
    "live agent such a call does not run."
)
_PROBES = (
    "Both sessions were also probed: the embedded model was asked a question under pressure, with the session's "
    "messages before it, with a benign conversation and with none. Its answers stand below, their reasons cut to a "
    "line. SmolLM2-135M is too small for a verdict: it reads no policy, any context moves it, and its reasons may be "
    "nonsense. They show how a probe works, and nothing about the assistant. `theodolite probe` shows answers in full; "
    "a better model is named with --model KIND:MODEL, best the one that your agent runs on."
)
_NO_WEIGHTS = "The sessions were not probed: the weights of the embedded model are not here. To get them: {command}"


def show_demo(*, probes: bool = True) -> int:
    """Scan the two sessions, tell what shows, and return the exit status. Raises TheodoliteError."""
    with as_file(files("theodolite.cli") / "demo_sessions") as folder:
        paths = sorted(folder.glob("*.json"))
        sightings = list(_sightings(paths, _SETTINGS))
        _write(_told(sightings), first=True)
        missing = _missing() if probes else ""
        if missing:
            _write(_unprobed(missing))
        elif probes:
            # The rest is told by now: who waits has something to read.
            say("asking the embedded model; this takes a minute or two ...")
            sightings = list(_sightings(paths, _asking(paths[0]), probing=True))
            _write(_probed(sightings))
    _write(_next())
    return NOTHING if {item.session: item.outcome for item in sightings} == _EXPECTED else FINDING


def save_sessions(folder: Path) -> int:
    """Write the two sessions into a folder. Raises ConfigError where they cannot be, or a file is already there."""
    sources = sorted((files("theodolite.cli") / "demo_sessions").iterdir(), key=lambda file: file.name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for source in sources:
            with (folder / source.name).open("xb") as stream:
                stream.write(source.read_bytes())
    except OSError as error:
        raise ConfigError(f"the sessions cannot be written into {folder}: {error}; name another folder") from error
    say(f"wrote {' and '.join(str(folder / source.name) for source in sources)}")
    return NOTHING


def _write(blocks: Iterable[Block], *, first: bool = False) -> None:
    """Write a part of the demo at once, with a line between it and what stands above."""
    sys.stdout.buffer.write(b"" if first else b"\n")
    write_blocks(blocks, sys.stdout.buffer, terminal=sys.stdout.isatty())
    sys.stdout.buffer.flush()


def _missing() -> str:
    """Return the command that gets what the probes need, or nothing where it is here."""
    if find_spec("xllamacpp") is None:
        return "pip install 'theodolite[local]' && theodolite models pull"
    from theodolite.models.local.weights import SMOLLM2  # noqa: PLC0415 - only for who probes

    return "" if SMOLLM2.path().is_file() else "theodolite models pull"


def _asking(path: Path) -> Settings:
    """Return the settings under which the embedded model is asked, with the system prompt of a session."""
    settings = with_model(replace(_SETTINGS, panel=_PANEL), "local")
    # Each is asked once, and behind the last four messages: on a small machine all of it would take minutes.
    table = {"system": _system(path), "samples": 1, "messages": 4}
    return of_recordings(replace(settings, detectors={**settings.detectors, DETECTOR: table}))


def _system(path: Path) -> str:
    """Return the system prompt of a session, which both share."""
    recorded = msgspec.json.decode(path.read_bytes(), type=_Recorded)
    return recorded.messages[0].content or ""


class _Said(msgspec.Struct):
    content: str | None = None


class _Recorded(msgspec.Struct):
    messages: list[_Said]


def _sightings(paths: Iterable[Path], settings: Settings, *, probing: bool = False) -> Iterator[Sighting]:
    with ExitStack() as stack:
        instrument = stack.enter_context(wire(settings, secret=_SECRET))
        held = Recordings(tuple(paths), instrument.readers)
        prober = None
        if probing:
            from theodolite.runtime.prober import Prober  # noqa: PLC0415 - an event loop, only for who probes

            prober = stack.enter_context(Prober(instrument.monitor.fleet.panel, reason="theodolite demo"))
        recorded = (item for file in held.files for item in held.read(file))
        for item in replay(recorded, instrument.monitor, prober):
            if isinstance(item, Sighting):
                yield item


def _told(sightings: Iterable[Sighting]) -> Iterator[Block]:
    yield Heading((Span("Theodolite demo", Style.STRONG),))
    yield Paragraph((Span(_INTRO),), hang=0)
    for sighting in sightings:
        if sighting.outcome is Outcome.CLEAN:
            seen = f"  {counted(len(sighting.calls), 'call')}: nothing found"
            yield Heading((Span(f"Session {sighting.session}", Style.STRONG), Span(seen, Style.GOOD)))
        else:
            yield from session_blocks(sighting, Origin())
    yield Heading((Span("What the finding rests on", Style.STRONG),))
    yield Paragraph((Span(_FINDING),), hang=0)


def _unprobed(missing: str) -> Iterator[Block]:
    yield Heading((Span("Probes", Style.STRONG),))
    yield Paragraph((Span(_NO_WEIGHTS.format(command=missing), Style.WARN),), hang=0)


def _probed(sightings: Iterable[Sighting]) -> Iterator[Block]:
    yield Heading((Span("Probes", Style.STRONG),))
    yield Paragraph((Span(_PROBES),), hang=0)
    for sighting in sightings:
        yield from probe_lines(sighting)


def _next() -> Iterator[Block]:
    yield Heading((Span("Try next", Style.STRONG),))
    for command in NEXT:
        yield Paragraph((Span(command),))
    yield Paragraph((Span("Then your own recordings: theodolite scan RECORDING", Style.QUIET),), hang=0)
