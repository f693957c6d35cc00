"""Why a recorded session is not probed, and what to do about it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from theodolite.config.settings import Settings
from theodolite.core.event import SystemPromptSet
from theodolite.core.reader import Recorded
from theodolite.core.reading import Failure
from theodolite.reports.escaping import inert
from theodolite.reports.layout import Block, Paragraph, Span, Style
from theodolite.reports.limits import LINES, NAME, PATH, QUOTE
from theodolite.reports.probes import DETECTOR
from theodolite.reports.totals import Origin
from theodolite.runtime.replay import Sighting

__all__ = ("Prompts", "Unprobed", "blind")

# Hexadecimal digits of a hash that tell two prompts apart for a person. Our choice.
_DIGITS = 12


class Prompts:
    """The hashes of the system prompts that sessions are recorded with, beside that of the prompt that was given."""

    def __init__(self, settings: Settings) -> None:
        text = settings.detectors.get(DETECTOR, {}).get("system", "")
        self._given = hashlib.sha256(text.encode()).hexdigest() if isinstance(text, str) and text else ""
        self._held: dict[str, str] = {}

    def note(self, item: Recorded) -> None:
        """Note the prompt that a session has from here on."""
        if isinstance(item, SystemPromptSet):
            self._held[item.session] = item.prompt_hash

    def differ(self, session: str) -> str:
        """Return how the prompt of a session differs from the one that was given; nothing where it does not."""
        held = self._held.get(session, "")
        if not self._given or held in {"", self._given}:
            return ""
        return f"its hash begins with {inert(held[:_DIGITS])}, that of the one given with {self._given[:_DIGITS]}"


def blind(sighting: Sighting) -> str:
    """Return why a session could not even be asked about; nothing where it could."""
    for decision in sighting.decisions:
        for signal in decision.signals:
            said = signal.said
            # What an inquiry came to is about another event than the one that brings it.
            if isinstance(said, Failure) and said.detector == DETECTOR and decision.seq == decision.about:
                return said.detail
    return ""


class Unprobed:
    """Sessions that are not probed, and why: `count` of them, of which the first are named."""

    def __init__(self, prompts: Prompts) -> None:
        self.count = 0
        self._prompts = prompts
        self._first: list[tuple[str, str, str]] = []
        self._file = ""

    def add(self, sighting: Sighting, origin: Origin) -> None:
        """Take a session that was read."""
        why = blind(sighting)
        if not why:
            return
        differs = self._prompts.differ(sighting.session)
        if differs and not self._file:
            self._file = origin.file
        self.count += 1
        if len(self._first) < LINES:
            self._first.append((sighting.session, why, differs))

    def blocks(self) -> Iterator[Block]:
        """Yield which they are, why, and what to do."""
        for session, why, differs in self._first:
            hashes = f": {differs}" if differs else ""
            yield Paragraph((Span(inert(session, NAME), Style.STRONG), Span(f": {inert(why, QUOTE)}{hashes}")))
        if self.count > len(self._first):
            yield Paragraph((Span(f"and {self.count - len(self._first):,} more", Style.QUIET),))
        if self._file:
            what = (
                f"what to do: copy the prompt out of the recording, here {inert(self._file, PATH)}, to the character "
                "and without a line end of its own, and give it by --system; or leave --system out"
            )
            yield Paragraph((Span(what),))
