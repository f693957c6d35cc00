"""One session on a page: its timeline, its findings with their evidence, and what went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from theodolite.core.policy import Action, Outcome
from theodolite.reports.alarms import alarms, fresh, worst
from theodolite.reports.document import FindingReport, ProbeVerdict, SessionReport, SignalReport, UnreadableReport
from theodolite.reports.escaping import inert
from theodolite.reports.html.calls import accounts, every_call, goals
from theodolite.reports.html.evidence import Place, events, evidence
from theodolite.reports.html.figure import figure
from theodolite.reports.html.pieces import more, section, within
from theodolite.reports.layout import counted
from theodolite.reports.limits import ANSWERS, CALLS, FAILURES, FINDINGS, NAME, QUOTE
from theodolite.reports.markup import Content, Markup, element
from theodolite.reports.pages import explaining, meaning_of
from theodolite.reports.probe_words import lines
from theodolite.reports.sentences import how_sure, old
from theodolite.reports.timeline import counting, timeline

__all__ = ("article", "facts", "of_probes")

# Bytes that its findings may take, and what models answered: no session takes all the room of the others (our choice).
ROOM_FOR_FINDINGS, ROOM_FOR_ANSWERS = 600_000, 200_000

# The sign before the word says the same without color.
_BADGES = {Outcome.FINDING: ("bad", "▲ Finding"), Outcome.FAILED: ("warn", "? Failed")}


def article(session: SessionReport, number: int, pages: Mapping[str, str], thresholds: Mapping[str, float]) -> Markup:
    """Return all that a page tells of a session. `number` makes the ids in it unique on the page."""
    place = Place(session, number)
    return element(
        "article",
        _head(place),
        goals(place),
        figure(session, timeline(session, thresholds), f"{place.name}-t"),
        _findings(place, pages),
        _settled(place),
        _answers(place),
        every_call(place),
        events(place),  # after all that cites them
        _failures(place),
        _unreadable(place),
        id=place.name,
        class_="session",
        aria_labelledby=f"{place.name}-h",
    )


def facts(session: SessionReport) -> str:
    """Return in a line how much was seen of a session, and where it was read."""
    blind = ", ".join([inert(name, NAME) for name in session.coverage.blind])
    told = (
        counted(len(session.calls), "call"),
        counted(sum(session.coverage.events.values()), "event"),
        f"could not judge: {blind}" if blind else "",
        f"read from {inert(session.file, QUOTE)} ({inert(session.reader, NAME)})" if session.file else "",
    )
    return " · ".join(filter(None, told))


def of_probes(session: SessionReport) -> Content:
    """Return what the probes of a session came to together, if it was probed."""
    probed = session.probed
    if probed is None:
        return None
    kind = {ProbeVerdict.DRIFT_FOUND: "bad", ProbeVerdict.NOTHING_FOUND: "good"}.get(probed.verdict, "warn")
    words, _, why = inert(probed.text, 2 * QUOTE).partition(": ")
    return ["Probes: ", element("strong", words, class_=kind), f": {why}"]


def _head(place: Place) -> Markup:
    session = place.session
    kind, badge = _BADGES[session.counts_as or session.outcome]
    agent = f"agent {inert(session.agent_id, NAME)} · " if session.agent_id else ""
    asks = session.action.replace("_", " ")
    return element(
        "header",
        element("p", element("strong", badge, class_=f"badge {kind}")),
        element("h3", inert(session.session_id, QUOTE) or "(no name)", id=f"{place.name}-h"),
        element("p", agent, facts(session), class_="quiet"),
        None if session.action is Action.LOG_ONLY else element("p", f"It asks for {asks}.", class_="bad"),
    )


def _findings(place: Place, pages: Mapping[str, str]) -> Content:
    found = fresh(place.session)
    if not found:
        return None
    signals = alarms(place.session)
    whole = (
        _finding(place, number, finding, signals.get((finding.code, finding.source), ()), pages)
        for number, finding in enumerate(found[:FINDINGS], 1)
    )
    told = within(whole, ROOM_FOR_FINDINGS)
    rest = more(len(found) - len(told), "findings in this session")
    return section(f"{place.name}-findings", "Findings", told, rest, level=4)


def _finding(
    place: Place, number: int, finding: FindingReport, signals: Sequence[SignalReport], pages: Mapping[str, str]
) -> Markup:
    code = finding.code
    meaning = inert(meaning_of(code, pages), QUOTE)
    return section(
        f"{place.name}-f{number}",
        [f"{number}. ", element("code", inert(code, NAME))],
        element("p", meaning[:1].upper() + meaning[1:], class_="meaning"),
        element("dl", list(_facts(place, number, finding, worst(signals)))),
        accounts(place, finding, number),
        evidence(place, signals, number),
        _probe(worst(signals)),
        level=5,
        kind="finding",
    )


def _facts(place: Place, number: int, finding: FindingReport, said: SignalReport | None) -> Iterator[Content]:
    calls = finding.calls
    shown = [[", " * (n > 0), place.call(seq, number)] for n, seq in enumerate(calls[:CALLS])]
    rest = f" and {len(calls) - CALLS:,} more" if len(calls) > CALLS else ""
    yield [element("dt", "Calls"), element("dd", shown, rest)]
    if said is not None:
        yield [element("dt", "How sure"), element("dd", f"{how_sure(said)}.", _answered(said))]
    yield [element("dt", "Known as"), element("dd", element("code", inert(finding.fingerprint, NAME)))]
    helping = explaining(finding.code, [] if said is None else [item.kind for item in said.evidence])
    more = [
        [", " * (n > 0), element("code", f"theodolite explain {inert(code, NAME)}")] for n, code in enumerate(helping)
    ]
    yield [element("dt", "More"), element("dd", more)]


def _settled(place: Place) -> Content:
    """Return a line for each finding that is not new."""
    lines = old(place.session)
    if not lines:
        return None
    items = [element("li", line) for line in lines[:FINDINGS]]
    rest = more(len(lines) - FINDINGS, "findings that are not new")
    return section(f"{place.name}-old", "Findings that are not new", element("ul", items), rest, level=4)


def _answered(signal: SignalReport) -> Content:
    """Return who answered, and whether that says anything about the agent."""
    if not signal.models:
        return None
    names = ", ".join([inert(model, NAME) for model in list(dict.fromkeys(signal.models))[:CALLS]])
    if not signal.surrogate:
        return f" Answered by {names}."
    surrogate = element("strong", "a surrogate", class_="warn")
    return [f" Answered by {names}, ", surrogate, ": not the session's own model, so it says nothing about this agent."]


def _answers(place: Place) -> Content:
    """Return what models answered where that is no finding: what surrogates answered, above all."""
    counts = counting(place.session)
    answers = [
        signal
        for signal in place.session.signals
        if signal.models and (signal.surrogate or (signal.code, signal.about) not in counts)
    ]
    said = of_probes(place.session)
    if not (answers or said):
        return None
    told = within((_answer(place, signal) for signal in answers[:ANSWERS]), ROOM_FOR_ANSWERS)
    rest = more(len(answers) - len(told), "answers")
    return section(
        f"{place.name}-answers", "What models answered", told, rest, element("p", said) if said else None, level=4
    )


def _answer(place: Place, signal: SignalReport) -> Markup:
    score = "no score" if signal.score is None else f"{signal.score:.2f}"
    said = f" {score}, {'of a surrogate, ' * signal.surrogate}{signal.level}"
    return element(
        "details",
        element("summary", element("code", inert(signal.code, NAME)), said),
        element("p", "About ", place.call(signal.about), ".", _answered(signal)),
        evidence(place, [signal]),
        _probe(signal),
    )


def _probe(signal: SignalReport | None) -> Content:
    """Return what there is to say of a probe, beside both answers."""
    told = [] if signal is None else list(lines(signal))
    if not told:
        return None
    return element("ul", [element("li", line.text, class_="warn" if line.warns else None) for line in told])


def _failures(place: Place) -> Content:
    said: dict[tuple[str, str, str, str], list[int]] = {}
    for signal in place.session.signals:
        if signal.cause is not None:
            said.setdefault((signal.detector, signal.version, signal.cause, signal.detail), []).append(signal.about)
    if not said:
        return None
    items = [_failure(key, about) for key, about in list(said.items())[:FAILURES]]
    rest = more(len(said) - FAILURES, "failures")
    return section(f"{place.name}-failures", "Failures", element("ul", items), rest, level=4)


def _failure(said: tuple[str, str, str, str], about: Sequence[int]) -> Markup:
    who, version, cause, detail = said
    others = f" and {len(about) - 1:,} more" if len(about) > 1 else ""
    why = f": {cause.replace('_', ' ')}{': ' if detail else ''}{inert(detail, QUOTE)}"
    name = element("strong", f"{inert(who, NAME)} {inert(version, NAME)}", class_="warn")
    return element("li", name, f" could not judge event {about[0]}{others}{why}")


def _unreadable(place: Place) -> Content:
    parts = place.session.unreadable
    if not parts:
        return None
    items = [_part(item) for item in parts[:FAILURES]]
    rest = more(len(parts) - FAILURES, "parts that could not be read")
    return section(f"{place.name}-unreadable", "Not read", element("ul", items), rest, level=4)


def _part(item: UnreadableReport) -> Markup:
    where = f"{item.file}:{item.line}" if item.line else item.file
    return element("li", inert(where, QUOTE), ": " * bool(where), inert(item.reason, QUOTE))
