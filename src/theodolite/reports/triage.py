"""Which findings are new: those that no baseline knows and that nobody suppressed.

Triage takes nothing away. A session keeps its outcome and its findings, each with its standing; only what a scan
counts, and with it the exit status, is about the new ones. A failure is no finding: nothing here hides it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from enum import StrEnum
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from theodolite.core.policy import Action, Outcome, highest, outcome
from theodolite.core.reading import Failure
from theodolite.core.text import printable
from theodolite.reports.findings import Finding, findings
from theodolite.runtime.replay import Sighting

__all__ = ("FRESH", "Mark", "Standing", "Suppression", "Triage", "Triaged", "all_false", "asked", "left")


class Standing(StrEnum):
    """What is known of a finding: nothing, that it was there before, or that somebody answers for it."""

    NEW = "new"
    KNOWN = "known"
    SUPPRESSED = "suppressed"


class Mark(Struct, frozen=True, kw_only=True):
    """The standing of a finding. One that is suppressed has a reason, and the last day on which that holds."""

    standing: Standing = Standing.NEW
    reason: str = ""
    expires: date | None = None


FRESH = Mark()


_PATTERN = frozenset("*?[")


class Suppression(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Somebody's word that some findings are no news, until the end of the day `expires`.

    They are named by one `fingerprint`, or by a `code` and at least one of `session`, `agent` and `tool`: patterns in
    which `*` stands for anything, `?` for one character and `[ab]` for one of several; case counts. `tool` must fit the
    tool of each call of a finding. `entry` is its place in the file, from 1.

    `false_alarm` says more: somebody looked at the session, and it was clean. It is then about findings that were
    looked at: one fingerprint, or the code in one session by its name, without a pattern.

    Raises ValueError for one without a reason, and for one that does not say what it is about, or says it twice.

    >>> Suppression(code="margin.untrusted", tool="get_*", reason="reads only", expires=date(2026, 1, 1)).names
    'margin.untrusted, tool get_*'
    """

    reason: str
    expires: date
    fingerprint: str = ""
    code: str = ""
    session: str | None = None
    agent: str | None = None
    tool: str | None = None
    false_alarm: bool = False
    entry: int = 0

    def __post_init__(self) -> None:
        patterns = (self.session, self.agent, self.tool)
        if not self.reason.strip():
            raise ValueError("the reason is empty: say who decided this, and why")
        if bool(self.fingerprint) is bool(self.code):
            raise ValueError("name either a fingerprint or a code")
        if self.fingerprint and patterns != (None, None, None):
            raise ValueError("a fingerprint names one finding: leave session, agent and tool out")
        if self.code and patterns == (None, None, None):
            raise ValueError('a code needs at least one of session, agent and tool; "*" stands for any')
        if self.code.endswith(".failure"):
            raise ValueError("a failure cannot be suppressed: it says that somebody could not look")
        if self.false_alarm and not self.fingerprint and (self.session is None or _PATTERN & set(self.session)):
            raise ValueError(
                "a false alarm is of a session that somebody looked at: name its fingerprint, or the session in full"
            )

    @property
    def names(self) -> str:
        """What it is about, in a few words."""
        parts = {"session": self.session, "agent": self.agent, "tool": self.tool}
        told = [f"{name} {pattern}" for name, pattern in parts.items() if pattern is not None]
        return self.fingerprint or ", ".join([self.code, *told])

    def fits(self, finding: Finding, sighting: Sighting) -> bool:
        """Whether it is about this finding of that session."""
        if self.fingerprint:
            return self.fingerprint == finding.fingerprint
        return (
            self.code == finding.code
            and _fits(self.session, [printable(sighting.session)])
            and _fits(self.agent, [printable(sighting.agent)])
            and _fits(self.tool, finding.tools)
        )


def all_false(sighting: Sighting, marks: Sequence[Suppression]) -> bool:
    """Whether a session has findings, and each of them is a false alarm by one of these marks.

    A day on which a mark expires says how long it hides findings. What was seen by who looked stays so.
    """
    found = findings(sighting)
    return bool(found) and all(any(one.false_alarm and one.fits(each, sighting) for one in marks) for each in found)


def _fits(pattern: str | None, names: Iterable[str]) -> bool:
    return pattern is None or all(fnmatchcase(name, pattern) for name in names)


class Triaged(Struct, frozen=True, kw_only=True):
    """What triage rested on, and what is out of date in it.

    `baseline` and `suppressions` name the files, empty where there is none. `gone` counts findings of the baseline that
    the scan did not find, `unused` has suppressions in force that were about none of its findings: neither is known of
    a scan that was stopped. `expired` are suppressions that no longer hide anything.
    """

    baseline: str = ""
    suppressions: str = ""
    gone: int | None = None
    expired: tuple[Suppression, ...] = ()
    unused: tuple[Suppression, ...] = ()


class Triage:
    """Tells the new findings of a scan from the others. A suppression goes before the baseline.

    `known` are the fingerprints of the baseline, `today` the day on which suppressions are in force or expired.
    State: the fingerprints of the baseline and the suppressions that were met. Cost: a look at each suppression for
    each finding.
    """

    def __init__(
        self,
        *,
        today: date,
        known: Collection[str] = (),
        suppressions: Sequence[Suppression] = (),
        baseline: str = "",
        source: str = "",
    ) -> None:
        self._known = frozenset(known)
        self._missing = set(known)
        self._force = [one for one in suppressions if one.expires >= today]
        self._unused = dict.fromkeys(self._force)
        self._files = Triaged(
            baseline=baseline,
            suppressions=source,
            expired=tuple([one for one in suppressions if one.expires < today]),
        )

    def marks(self, sighting: Sighting) -> dict[str, Mark]:
        """Return the standing of each finding of a session that is not new, by fingerprint."""
        marks: dict[str, Mark] = {}
        for finding in findings(sighting):
            self._missing.discard(finding.fingerprint)
            fitting = [one for one in self._force if one.fits(finding, sighting)]
            for one in fitting:
                self._unused.pop(one, None)
            if fitting:
                first = fitting[0]
                mark = Mark(standing=Standing.SUPPRESSED, reason=first.reason, expires=first.expires)
                marks[finding.fingerprint] = mark
            elif finding.fingerprint in self._known:
                marks[finding.fingerprint] = Mark(standing=Standing.KNOWN)
        return marks

    def result(self, *, complete: bool) -> Triaged:
        """Return what it rested on; `complete` says that it saw all that the scan was asked to read."""
        if not complete:
            return self._files
        gone = len(self._missing) if self._files.baseline else None
        return replace(self._files, gone=gone, unused=tuple(self._unused))


def left(sighting: Sighting, marks: Mapping[str, Mark]) -> Outcome | None:
    """Return what a session comes to without the findings that are not new; None where nothing else is left to count.

    Its failures, its unreadable parts and its blind detectors count as if there had been no finding.
    """
    if sighting.outcome is not Outcome.FINDING or not _all_old(sighting, marks):
        return sighting.outcome
    failures = [
        replace(made, action=Action.LOG_ONLY, signals=tuple([s for s in made.signals if isinstance(s.said, Failure)]))
        for made in sighting.decisions
    ]
    rest = outcome(
        failures,
        unreadable=sum(part.parts for part in sighting.unreadable),
        blind=sighting.coverage.blind,
        deciding=any(sight.decides for sight in sighting.coverage.detectors),
    )
    return None if rest is Outcome.CLEAN else rest


def asked(sighting: Sighting, marks: Mapping[str, Mark]) -> Action:
    """Return the highest action that a session asks for, without what only findings that are not new ask for."""
    if not marks:
        return sighting.action
    return highest(found.action for found in findings(sighting) if found.fingerprint not in marks)


def _all_old(sighting: Sighting, marks: Mapping[str, Mark]) -> bool:
    return bool(marks) and all(found.fingerprint in marks for found in findings(sighting))
