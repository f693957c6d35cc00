"""Models with a known policy, a known drift and known effects of a context: what a measure of drift is tried on.

What such a model decides follows from a sum of log-odds, so that it is known beforehand what a good measure finds, and
what it must not take for drift.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Literal

import anyio
import msgspec
from msgspec import Raw

from theodolite.core.inquiry import Draw, Query, Reply, Usage
from theodolite.detectors.behavior.probe import SLOT, ProbeTemplate
from theodolite.detectors.behavior.readout import WORDINGS

__all__ = ("TAINT", "TOPIC", "Asked", "Contract", "PolicyModel")

TAINT, TOPIC = "marked as taint", "marked as topic"
"""What a context holds by default that drifts the model, or that is merely another subject."""

Contract = Literal["choice", "text", "json", "vouched"]
"""How a model answers.

`choice`: exact probabilities where there are options, else as `json` where the query has a schema, else as `text`.
`text`: sentences, and tool calls beside them. `json`: the six fields of axor-probe, in which the model reports truly.
`vouched`: the same from the host's adapter, which shows neither what was said nor a tool call. The last three name one
of the options where there are some, as a hosted model does that shows no probabilities.
"""

_DECISIONS = ("comply", "decline", "escalate")
_SENTENCES = {
    "comply": "Yes, I will do that right away.",
    "decline": "No, I cannot do that: the policy forbids it.",
    "escalate": "I cannot decide this myself, so I am referring it to a person in charge.",
}
# A model that does not bind options to meanings still shows a trace of them: a fiftieth, as on one of 0.5 billion
# parameters that we measured.
_TRACE = 0.02


class Asked(StrEnum):
    """What a question is to the model."""

    VIOLATION = "violation"
    TWIN = "twin"
    OTHER = "other"


@dataclass(kw_only=True, eq=False)
class PolicyModel:
    """A model whose log-odds of doing what is asked are a sum of known terms.

    `policy` is subtracted for a violation and added for its twin: 0 reads no policy, below 0 inverts it. `liking` is
    added to both, a taste for the words of an answer; above 0 for doing it. `scatter` is the standard deviation of what
    each question does by itself. `drift` is added to a violation behind a
    context with one of `taints`. `topic` is added behind a context with one of `topics`, to both, or to the violation
    alone with `topic_spares_twins`, which no difference between them takes out. `novelty` is added to both behind any
    context. `wobble` is the standard deviation of what else a context does, of its own to each question. `order` is
    added to the option that stands first, whatever it says. Without `binds` the options get a third each, but for a
    fiftieth of all that. Of what is not done, the share `escalates` is handed over to a person.

    `leak` is how often a draw tells the canary, and `attempts` how often it calls a tool where the query has any (the
    first, or `tool`); with `tainted_leak` and `tainted_attempts` more or less behind a context with one of `taints`.

    A question is known by the probes of `templates`, or as one that holds one of `violations` or `twins`, in any case.
    Of any other the model has no policy; `unknown` counts these. `contract` says in which form it answers. Equal
    queries get equal answers, by `seed`; with `anew` an equal query gets new draws each time it is asked.

    >>> from theodolite.core.inquiry import Role
    >>> model = PolicyModel(violations=["all balances"], twins=["my balance"])
    >>> model.log_odds(Query(role=Role.SUBJECT, prompt="Show me all balances.")), model.unknown
    (-3.0, 0)
    """

    policy: float = 3.0
    liking: float = 0.0
    scatter: float = 0.0
    drift: float = 0.0
    topic: float = 0.0
    topic_spares_twins: bool = False
    novelty: float = 0.0
    wobble: float = 0.0
    order: float = 0.0
    binds: bool = True
    escalates: float = 0.25
    leak: float = 0.0
    tainted_leak: float | None = None
    attempts: float = 0.0
    tainted_attempts: float | None = None
    tool: str = ""
    templates: Iterable[ProbeTemplate] = ()
    violations: Collection[str] = ()
    twins: Collection[str] = ()
    taints: Collection[str] = (TAINT,)
    topics: Collection[str] = (TOPIC,)
    contract: Contract = "choice"
    seed: int = 0
    anew: bool = False
    name: str = "policy-model"
    max_concurrency: int = 4
    delay: float = 0.0
    calls: int = field(default=0, init=False)
    unknown: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        templates = tuple(self.templates)
        self._known = {
            Asked.VIOLATION: _known([(one, phrasing.probe) for one in templates for phrasing in one.phrasings]),
            Asked.TWIN: _known([(one, phrasing.twin) for one in templates for phrasing in one.phrasings]),
        }
        self._marks = {Asked.VIOLATION: self.violations, Asked.TWIN: self.twins}
        self._times: Counter[bytes] = Counter()

    async def ask(self, query: Query) -> Reply:
        """Answer one query, after `delay` seconds."""
        await anyio.sleep(self.delay)
        return self.reply(query)

    def reply(self, query: Query) -> Reply:
        """Answer one query at once."""
        self.calls += 1
        odds = self.log_odds(query)
        dice = self._dice(query)
        if query.options:
            return self._chosen(query, odds, dice)
        tainted = _holds(self._behind(query), self.taints)
        draws = [self._draw(query, odds, dice, tainted=tainted) for _ in range(query.samples)]
        return self._reply(query, draws, ())

    def asked(self, query: Query) -> Asked:
        """Return what a question is: by the prompt, or where it was put as a tool's result by the last message."""
        for text in (query.prompt, *[message.text for message in (query.context or ())[-1:]]):
            kind = self._kind(text)
            if kind is not Asked.OTHER:
                return kind
        return Asked.OTHER

    def log_odds(self, query: Query) -> float:
        """Return the log-odds with which the question is done, the order of options left out."""
        kind, behind, put = self.asked(query), self._behind(query), self._put(query)
        self.unknown += kind is Asked.OTHER
        odds = self.liking + {Asked.VIOLATION: -self.policy, Asked.TWIN: self.policy, Asked.OTHER: 0.0}[kind]
        odds += self._own(self.scatter, put)
        if not behind:
            return odds
        if kind is Asked.VIOLATION and _holds(behind, self.taints):
            odds += self.drift
        if _holds(behind, self.topics) and not (self.topic_spares_twins and kind is not Asked.VIOLATION):
            odds += self.topic
        return odds + self.novelty + self._own(self.wobble, put, *behind)

    def _own(self, spread: float, *texts: str) -> float:
        """Return what some texts do by themselves, drawn from a normal distribution: the same each time."""
        if not spread:
            return 0.0
        digest = hashlib.sha256("\0".join((str(self.seed), *texts)).encode(errors="replace")).digest()
        return Random(digest).gauss(0.0, spread)  # noqa: S311 - test data, not secrets

    def _put(self, query: Query) -> str:
        """Return the question as it was put, with the system prompt."""
        texts = [message.text for message in query.context or ()]
        return "\n".join([query.system, query.prompt, *texts[len(self._behind(query)) :]])

    def _kind(self, text: str) -> Asked:
        for kind, pattern in self._known.items():
            if pattern is not None and pattern.match(text):
                return kind
        return next((kind for kind, marks in self._marks.items() if _holds([text], marks)), Asked.OTHER)

    def _behind(self, query: Query) -> list[str]:
        """Return the texts of the context, without a question that stands in it."""
        texts = [message.text for message in query.context or ()]
        return texts[:-1] if texts and self._kind(query.prompt) is Asked.OTHER is not self._kind(texts[-1]) else texts

    def _dice(self, query: Query) -> Random:
        digest = hashlib.sha256(f"{self.seed} ".encode() + msgspec.json.encode(query)).digest()
        if self.anew:
            self._times[digest] += 1
            digest += str(self._times[digest]).encode()
        return Random(digest)  # noqa: S311 - test data, not secrets

    def _chances(self, odds: float) -> tuple[float, float, float]:
        """Return the log-probabilities of doing it, turning it down and handing it over, from equal ones without it."""
        if not self.binds:
            return _TRACE * odds, 0.0, 0.0
        rest = -_softplus(odds)
        return -_softplus(-odds), rest + _log(1.0 - self.escalates), rest + _log(self.escalates)

    def _chosen(self, query: Query, odds: float, dice: Random) -> Reply:
        chances = self._chances(odds)
        known = next((one.options for one in WORDINGS if set(one.options) == set(query.options)), query.options)
        meant = dict(zip(known, chances, strict=False))
        logs = [meant.get(option, 0.0) + self.order * (not place) for place, option in enumerate(query.options)]
        weights = [math.exp(log - max(logs)) for log in logs]
        shares = [weight / math.fsum(weights) for weight in weights]
        said = dice.choices(query.options, shares, k=query.samples)
        if self.contract != "choice":
            shares = [said.count(option) / len(said) for option in query.options]
        return self._reply(query, [Draw(text=text) for text in said], zip(query.options, shares, strict=True))

    def _draw(self, query: Query, odds: float, dice: Random, *, tainted: bool) -> Draw:
        weights = [math.exp(log) for log in self._chances(odds)]
        [decision] = dice.choices(_DECISIONS, weights)
        leaks = dice.random() < _rate(self.leak, self.tainted_leak, tainted=tainted) and bool(query.canary)
        acts = dice.random() < _rate(self.attempts, self.tainted_attempts, tainted=tainted) and bool(query.tools)
        words = _SENTENCES[decision]
        vouched = self.contract == "vouched"
        if leaks and not vouched:
            words += f" The reference is {query.canary}."
        calls = (self._call(query),) if acts and not vouched else ()
        if self.contract == "text" or (self.contract == "choice" and not isinstance(query.schema, Raw)):
            return Draw(text=words, tool_calls=calls)
        report = {
            "decision": decision,
            "reasoning": words,
            "disclosed_data": leaks,
            "policy_cited": decision == "decline",
            "escalation_suggested": decision == "escalate",
            "tool_call_attempted": acts,
        }
        return Draw(text=json.dumps(report), tool_calls=calls, vouched=vouched)

    def _call(self, query: Query) -> Raw:
        return Raw(msgspec.json.encode({"name": self.tool or query.tools[0].name, "arguments": {}}))

    def _reply(self, query: Query, draws: Sequence[Draw], choice: Iterable[tuple[str, float]]) -> Reply:
        usage = Usage(
            input_tokens=len(query.prompt.split()), output_tokens=sum(len(draw.text.split()) for draw in draws)
        )
        told = tuple(choice)
        exact = bool(told) and self.contract == "choice"
        return Reply(query=query, model=self.name, draws=tuple(draws), choice=told, exact=exact, usage=usage)


def _known(phrasings: Iterable[tuple[ProbeTemplate, str]]) -> re.Pattern[str] | None:
    """Return a pattern for the beginning of a text that is one of some phrasings, filled; None where there are none."""
    patterns: list[str] = []
    for template, text in phrasings:
        parts = SLOT.split(text)  # text and names of slots in turn
        patterns.append(
            "".join(
                [
                    f"(?:{'|'.join(map(re.escape, template.slots[part]))})" if place % 2 else re.escape(part)
                    for place, part in enumerate(parts)
                ]
            )
        )
    return re.compile("|".join(patterns)) if patterns else None


def _holds(texts: Iterable[str], marks: Iterable[str]) -> bool:
    wanted = [mark.lower() for mark in marks]
    return any(mark in text.lower() for text in texts for mark in wanted)


def _rate(clean: float, tainted_rate: float | None, *, tainted: bool) -> float:
    return tainted_rate if tainted and tainted_rate is not None else clean


def _softplus(value: float) -> float:
    """Return log(1 + exp(value)); it overflows nowhere."""
    return max(value, 0.0) + math.log1p(math.exp(-abs(value)))


def _log(share: float) -> float:
    return math.log(share) if share > 0.0 else -math.inf
