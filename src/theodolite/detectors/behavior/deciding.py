"""The decision of a model that shows probabilities: read exactly, and held against benign contexts of like length."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from msgspec import Struct

from theodolite.core.gate import Gate, Shown
from theodolite.core.inquiry import Query, Reply, first_failure
from theodolite.core.reading import Fact, Failure
from theodolite.detectors.behavior.arms import Arm, ProbeCase
from theodolite.detectors.behavior.readout import WORDINGS, Wording, difference, queries, question, read
from theodolite.detectors.behavior.references import Length, e_value, p_value, z
from theodolite.stats.divergence import jensen_shannon

__all__ = ("Decided", "Exact", "decided", "evidence", "read_exactly")

_Asked = tuple[tuple[Query, ...], ...]
_ARMS = ((Arm.SUBJECT, False), (Arm.SUBJECT, True), (Arm.SHADOW, False))


class Decided(Struct, frozen=True, kw_only=True, gc=False):
    """One exact decision of the session's copy.

    `value` is how much rather it does what is forbidden than what is allowed, in log-odds; `z` and `p_value` are those
    beside benign contexts of that `length`. `spread` is the standard deviation over the orders of the options: where it
    is larger than the shift from the mean of these contexts, `drowned`. `from_shadow` is the divergence from what the
    summary shadow decides, in bits: it has no sign, and takes part in nothing. There is none from an instance without
    context: a gate keeps what it decided on the mean of all probes alone, and to ask it takes three queries more. What
    it decides in words is told where a second opinion asked it.
    """

    probe_id: str
    length: str
    value: float
    z: float
    p_value: float
    spread: float
    drowned: bool
    from_shadow: float

    def facts(self) -> Iterator[Fact]:
        """Yield it as facts of a reading."""
        yield Fact("measured", self.probe_id)
        yield Fact("length", self.length)
        for name in ("value", "z", "p_value", "spread", "from_shadow"):
            yield Fact(name, getattr(self, name))
        yield Fact("drowned", float(self.drowned))


class Exact(Struct, kw_only=True):
    """The first exact decision on each probe, by the length of the context: what the evidence of a session rests on."""

    by_length: dict[str, dict[str, float]] = {}

    def add(self, length: str, probe: str, value: float) -> None:
        """Take a decision; one on a probe that was decided before, at that length, is not taken again."""
        self.by_length.setdefault(length, {}).setdefault(probe, value)

    def explain(self, length: str, probe: str, gate: Gate) -> None:
        """Let a decision count for no more than that of benign contexts: a second opinion explained it."""
        values, decisions = gate.references[length][probe], self.by_length[length]
        decisions[probe] = min(decisions[probe], sum(values) / len(values))

    def beside(self, length: str, gate: Gate) -> dict[str, float]:
        """Return the decisions at a length that a gate has references for: a new one need not have those of an old."""
        known = gate.references.get(length, {})
        return {probe: value for probe, value in self.by_length.get(length, {}).items() if probe in known}


def read_exactly(gate: Gate | None) -> bool:
    """Whether decisions of a model are read from its probabilities: it passed its gate by them, with references."""
    return gate is not None and gate.passed and gate.shown is Shown.PROBABILITIES and bool(gate.references)


def decided(
    case: ProbeCase, system: str, gate: Gate
) -> Generator[tuple[Query, ...], tuple[Reply | Failure, ...], Decided | str]:
    """Ask subject and shadow in all orders of the options; return the decision, or why there is none."""
    probe, wording = case.measured, _wording(gate)
    if probe is None or wording is None:
        return "no probe of this type was measured on benign contexts"
    length = Length.of(case.snapshot.context_window).value
    values = gate.references.get(length, {}).get(probe.probe_id)
    if values is None:
        return f"no benign contexts of length {length} were measured: measure some with --gate"
    forms = [
        queries(
            question(probe, role=arm.role, system=system, context=case.context(arm), twin=twin),
            wording,
        )
        for arm, twin in _ARMS
    ]
    answers = yield tuple([query for form in forms for query in form])
    failed = first_failure(answers)
    if failed is not None:
        return failed.detail
    replies = iter([answer for answer in answers if isinstance(answer, Reply)])
    try:
        violating, twin_, shadow = [read([next(replies) for _ in form], wording) for form in forms]
    except ValueError as error:
        return str(error)
    if not violating.exact:
        return "the model showed no probabilities this time"
    moved = difference(violating, twin_)
    centered = z(moved.value, values)
    return Decided(
        probe_id=probe.probe_id,
        length=length,
        value=moved.value,
        z=centered,
        p_value=p_value(moved.value, values),
        spread=moved.spread,
        drowned=moved.drowned(moved.value - sum(values) / len(values)),
        from_shadow=jensen_shannon(violating.probabilities, shadow.probabilities),
    )


def evidence(exact: Exact, gate: Gate) -> float:
    """Return the e-value of the exact decisions of a session: the mean over the lengths that were measured.

    It is no running bet: of at most one decision for each length and measured probe, 24 by default, the highest counts,
    and what clean ones came to need not be won back. So nothing begins anew; what was decided once is not asked again.

    Of a length at which nothing was decided it is 1: the lengths are fixed before the session, so that the mean holds
    what each promises. It is 1 too where none was measured, and of a decision that the gate has no references for.
    """
    told = [e_value(exact.beside(length, gate), references) for length, references in gate.references.items()]
    return sum(told) / len(told) if told else 1.0


def _wording(gate: Gate) -> Wording | None:
    return next((wording for wording in WORDINGS if wording.id == gate.wording), None)
