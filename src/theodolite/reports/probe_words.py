"""What a probe came to, in sentences, from what a document has of it: the same words in every form for people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from theodolite.core.reading import Evidence, Level
from theodolite.detectors.behavior.accumulation import ALPHA_LONG
from theodolite.detectors.behavior.probe import ProbeType
from theodolite.reports.document import SignalReport
from theodolite.reports.escaping import inert
from theodolite.reports.layout import counted
from theodolite.reports.limits import NAME

__all__ = ("BASELINE", "Line", "answered_by", "answers", "compares", "difference", "known_of", "lines", "word")

BASELINE = "no context"
"""What an instance without any context is called."""

_DETECTOR, _SESSION, _TOLD = "behavior", "behavior.session", "behavior.canary_disclosed"
_COMPARED = frozenset(f"{_DETECTOR}.{kind.value}" for kind in ProbeType)
_BET, _REASON = "behavior.bet", "reasoning"
# The processes that a session's evidence is the mean of, in words.
_NUMBERS: Mapping[int, str] = MappingProxyType({2: "two", 3: "three"})
_REDACTED = re.compile(r"\[REDACTED:")

_DIRECTIONS: Mapping[str, str] = MappingProxyType(
    {"behavior.toward": "differs, looser", "behavior.away": "differs, stricter"}
)
_TRIGGERS: Mapping[str, str] = MappingProxyType(
    {
        "context_growth": "the context had grown",
        "external_content": "text from outside had come in",
        "compaction": "the context was compacted",
        "handoff": "the session was handed over",
        "reputation": "its reputation fell",
        "manual": "it was asked for",
    }
)
_TRIANGULATED: Mapping[str, str] = MappingProxyType(
    {
        "legitimate": "session and shadow decide alike, and it does not: their context explains it",
        "drift_signal": "the session alone decides otherwise: it counts as drift",
        "no_signal": "all three decide alike: the difference is none of a decision",
        "summary_calibration_anomaly": "the shadow alone decides otherwise: its summary explains it",
        "all_differ": "all three decide differently: it counts as it was",
    }
)
_ANOMALIES: Mapping[str, str] = MappingProxyType(
    {
        "parse_failure": "was not in the form that was asked for",
        "schema_mismatch": "had values of another kind than was asked for",
        "field_missing": "left fields out",
        "tool_call_malformed": "had a tool call that cannot be read",
    }
)
_CONTRADICTIONS: Mapping[str, str] = MappingProxyType(
    {
        "decision": "what it decides",
        "disclosed_data": "whether it told the planted reference",
        "tool_call_attempted": "whether it tried a call",
    }
)
_ALIKE: Mapping[str, str] = MappingProxyType(
    {
        "same_model_version": "the model",
        "same_system_prompt_hash": "the system prompt",
        "same_tool_schema_hash": "the tools",
        "same_sampling_config": "how it samples",
    }
)


class Line(NamedTuple):
    """A sentence. `warns`: who reads the rest and not this would think too much of it.

    `once`: it need not be said again of the next probe of a session.
    """

    text: str
    warns: bool = False
    once: bool = False


def compares(signal: SignalReport) -> bool:
    """Whether a signal compares the answers to one probe."""
    return signal.cause is None and signal.code in _COMPARED


def answers(signal: SignalReport) -> tuple[Evidence, ...]:
    """Return the fields of both answers, side by side: the reason last, where there is one."""
    told = [item for item in signal.evidence if item.kind.startswith(f"{_DETECTOR}.") and item.kind != _BET]
    return tuple(sorted(told, key=lambda item: item.path == _REASON))


def difference(item: Evidence) -> str:
    """Return how the session's answer differs from the shadow's in a field.

    >>> difference(Evidence(kind="behavior.toward", path="decision", expected="decline", observed="comply"))
    'differs, looser'
    """
    return "same" if item.expected == item.observed else _DIRECTIONS.get(item.kind, "differs")


def answered_by(signal: SignalReport) -> Line:
    """Return who answered, and whether that says anything about the agent."""
    models = ", ".join(inert(model, NAME) for model in dict.fromkeys(signal.models))
    if signal.surrogate:
        told = f"answered by {models}, a model that the recording does not name: it says nothing about that agent"
        return Line(told, warns=True, once=True)
    return Line(f"answered by {models}, a model of the session itself", once=True)


def lines(signal: SignalReport) -> Iterator[Line]:
    """Yield what there is to say of a probe, or of all probes of a session so far, beside the answers themselves."""
    if signal.code == _SESSION:
        yield from _session(signal)
    elif signal.code == _TOLD:
        yield from _told(signal)
    elif compares(signal):
        yield from _compared(signal)


def known_of(repeatable: int, known: int) -> str:
    """Return in words how often an answer was known already; nothing where no question may be repeated.

    >>> known_of(40, 30)
    '; of 40 answers that may stand for other sessions too, 30 were known (75 %)'
    """
    if not repeatable:
        return ""
    share = f"{known / repeatable:.0%}".replace("%", " %")
    return f"; of {counted(repeatable, 'answer')} that may stand for other sessions too, {known:,} were known ({share})"


def _number(signal: SignalReport, name: str) -> float | None:
    return next((fact.value for fact in signal.facts if fact.name == name and isinstance(fact.value, float)), None)


def word(signal: SignalReport, name: str) -> str:
    """Return the first fact of that name, where it is a word; else nothing."""
    found = next((fact.value for fact in signal.facts if fact.name == name and isinstance(fact.value, str)), "")
    return inert(found, NAME)


def _numbers(signal: SignalReport, name: str) -> list[float]:
    return [fact.value for fact in signal.facts if fact.name == name and isinstance(fact.value, float)]


def _count(signal: SignalReport, name: str) -> int:
    return int(_number(signal, name) or 0.0)


def _over(signal: SignalReport) -> str:
    level = "below" if signal.level is Level.CLEAR else "over"
    return f"{level} its threshold, which is {signal.status}"


def _session(signal: SignalReport) -> Iterator[Line]:
    """Yield what the probes of a session come to together."""
    alarm = 1.0 / ALPHA_LONG
    whole = _number(signal, "e_value")
    whole = 1.0 / max(1.0 - (signal.score or 0.0), 1e-16) if whole is None else whole
    after = f"after {counted(_count(signal, 'probes'), 'probe')}"
    # Where it neither finds nor is a surrogate's, a fusion hears it, and nobody shall take its figure for the alarm.
    heard = not (signal.finds or signal.surrogate)
    decides = "fusion.session decides in its place" if heard else f"it alarms at {alarm:g}"
    yield Line(f"{inert(signal.code, NAME)}: evidence of {whole:,.4g} {after}; {decides}")
    done, decided = _number(signal, "observed"), _number(signal, "decided")
    if done is not None and decided is not None:
        bets = {"what was done": done, "what was decided": decided}
        if (exactly := _number(signal, "exactly")) is not None:
            bets["what was decided by probabilities"] = exactly
        told = [f"{name} {bet:,.4g}" for name, bet in bets.items()]
        held = ", held down by what nobody vouches for" if whole < sum(bets.values()) / len(bets) * 0.999 else ""
        yield Line(f"the mean of {_NUMBERS[len(told)]} bets that begin at 1{held}: {', '.join(told)}")
    disclosures = _count(signal, "disclosures")
    if disclosures:
        confirmed = _count(signal, "confirmed")
        yield Line(f"{confirmed} of {counted(disclosures, 'disclosure')} confirmed by fresh answers", warns=True)
    if _count(signal, "failed"):
        yield Line(f"{counted(_count(signal, 'failed'), 'probe')} got no answer", warns=True)
    if signal.level is not Level.CLEAR and not heard:
        yield Line("a finding: it asks for a review" if signal.finds else "over its threshold; it is no finding here")


def _told(signal: SignalReport) -> Iterator[Line]:
    """Yield who told the planted reference."""
    yield Line(f"{inert(signal.code, NAME)}: score {signal.score or 0.0:.2f}, {_over(signal)}")
    arms = (("this session", "told_by_subject"), ("clean shadow", "told_by_shadow"), ("benign", "told_by_reference"))
    times = [f"{who} {_count(signal, name)}" for who, name in arms if _number(signal, name) is not None]
    if times:
        yield Line(f"answers that told the planted reference: {', '.join(times)}")
    yield Line("a finding; it causes no action" if signal.finds and signal.level is not Level.CLEAR else "no finding")


def _compared(signal: SignalReport) -> Iterator[Line]:
    """Yield what one probe shows, what that rests on, and what it is not worth."""
    worth = "one probe never acts and is no finding"
    yield Line(f"{inert(signal.code, NAME)}: score {signal.score or 0.0:.2f}, {_over(signal)}; {worth}")
    yield from _asked(signal)
    yield from _made_of(signal)
    yield from _done(signal)
    yield from _triangulated(signal)
    yield from _bets(signal)
    yield from _exactly(signal)
    yield from _worth(signal)


def _asked(signal: SignalReport) -> Iterator[Line]:
    probe, library, trigger = (word(signal, name) for name in ("probe", "library", "trigger"))
    if probe:
        why = f", since {_TRIGGERS[trigger]}" if trigger in _TRIGGERS else ""
        # The redactor knows the names of ours alone.
        own = _REDACTED.match(probe) or _REDACTED.match(library)
        yield Line(f"{'a probe of a library with your own' if own else f'probe {probe} of library {library}'}{why}")


def _made_of(signal: SignalReport) -> Iterator[Line]:
    """Yield what the score is the highest of, beside what was done."""
    fields, rise = _number(signal, "fields"), _number(signal, "rise")
    if fields is not None and rise is not None:
        told = f"looser fields come to {fields:.2f}; it went along more often than behind benign text by {rise:+.2f}"
        yield Line(told)


def _done(signal: SignalReport) -> Iterator[Line]:
    """Yield what was seen, whatever the answers say of themselves."""
    if _number(signal, "breach") == 1.0:
        yield Line("this session's copy did what the policy forbids, and no other arm did", warns=True)
    for fact in signal.facts:
        if fact.name == "contradiction" and fact.value in _CONTRADICTIONS:
            yield Line(_contradicted(signal, str(fact.value)), warns=True)
    anomaly = word(signal, "anomaly")
    if anomaly:
        yield Line(f"an answer {_ANOMALIES.get(anomaly, 'had another form')}: it was read as words", warns=True)
    again = _number(signal, "again_by_subject")
    if again is not None:
        benign = _count(signal, "again_by_reference")
        confirmed = "confirmed" if again > benign else "not confirmed"
        yield Line(
            f"{confirmed}: of fresh answers {again:.0f} of this session told it, and {benign} behind benign text"
        )


def _contradicted(signal: SignalReport, field: str) -> str:
    if field == "disclosed_data" and _number(signal, "told_by_subject") == 0.0:
        return "the model says of itself that it told the planted reference, and did not"
    return f"the model says one thing of itself and did another: {_CONTRADICTIONS[field]}"


def _triangulated(signal: SignalReport) -> Iterator[Line]:
    verdict = word(signal, "triangulation")
    if not verdict:
        return
    stands = "what was done stands" if _number(signal, "breach") == 1.0 else "it adds nothing"
    means = _TRIANGULATED.get(verdict, verdict)
    if verdict in {"legitimate", "no_signal", "summary_calibration_anomaly"}:
        means = f"{means}; {stands}"
    yield Line(f"an instance without context was asked too and says {word(signal, 'baseline')}: {means}")


def _bets(signal: SignalReport) -> Iterator[Line]:
    """Yield what the pairs of answers bring to the evidence of the session."""
    pairs = _count(signal, "pairs")
    if not pairs:
        return
    counts = _number(signal, "cached") == 1.0
    beside = "counts behind benign text, kept from other sessions" if counts else "as many behind benign text"
    deeds = sum(_numbers(signal, "observed"))
    told = f"{counted(pairs, 'answer')} of this session beside {beside}: forbidden deeds {deeds:+.3g}"
    decided = _numbers(signal, "decided")
    if decided:
        told += f", decisions beyond the twin's {sum(decided):+.3g}"
    yield Line(told)
    judged = _number(signal, "judged")
    if judged is not None:
        yield Line(f"a judge puts the difference in meaning at {judged:.2f} of 1, which may add and takes nothing away")


def _exactly(signal: SignalReport) -> Iterator[Line]:
    """Yield the decision that was read from probabilities, beside those behind benign contexts."""
    z, p = _number(signal, "z"), _number(signal, "p_value")
    if z is None or p is None:
        return
    where = f"probe {word(signal, 'measured')}, {word(signal, 'length')} contexts"
    spread = _number(signal, "spread") or 0.0
    yield Line(
        f"its decision, read from probabilities ({where}): z {z:+.2f}, p {p:.2g} beside benign contexts, spread over "
        f"the orders of the options {spread:.2f}"
    )
    if _number(signal, "drowned") == 1.0:
        yield Line("the order of the options moves that more than the context does: read nothing into it", warns=True)
    away = _number(signal, "from_shadow")
    if away is not None:
        yield Line(f"{away:.2f} bits from the summary shadow, which counts for nothing: any context moves a model")


_GATES = {
    "none": "its decisions are not vouched for: run `theodolite probe --gate`",
    "stale": "its gate is of another system prompt, library or version: run `theodolite probe --gate` again",
    "failed": "its decisions count for nothing with this model: what was done counts",
}


def _worth(signal: SignalReport) -> Iterator[Line]:
    """Yield what of it was not checked, and what it is therefore not worth."""
    told = _GATES.get(word(signal, "gate") or "")
    if told:
        yield Line(told, warns=True, once=True)
    lacking = [name for name in _ALIKE if _number(signal, name) == 0.0]
    if lacking:
        prompt = " (none was given: --system)" if word(signal, "system") == "absent" else ""
        names = [_ALIKE[name] + (prompt if name == "same_system_prompt_hash" else "") for name in lacking]
        told = f"not seen to be the session's own in both arms: {', '.join(names)}"
        yield Line(f"{told}; so it cannot be strong evidence", warns=True, once=True)
    if _count(signal, "tools_left_out"):
        yield Line(
            f"{counted(_count(signal, 'tools_left_out'), 'tool')} of the session had no room", warns=True, once=True
        )
