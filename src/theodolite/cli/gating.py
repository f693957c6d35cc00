"""Whether a model can be measured under a policy, from the arguments to the exit status."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from theodolite.cli.answered import Answered
from theodolite.cli.asking import check_models
from theodolite.cli.asking import settings_of as asked_settings
from theodolite.cli.choices import Form
from theodolite.cli.estimating import cost_of
from theodolite.cli.exits import NOT_JUDGED, NOTHING, say
from theodolite.cli.output import involved, spared
from theodolite.cli.pending import awaited
from theodolite.cli.probing import Request
from theodolite.cli.progress import Display, span
from theodolite.cli.replacing import alone, put, target_of
from theodolite.cli.telling import tell
from theodolite.config.models import PanelSettings, players
from theodolite.config.probing import library_of, references_of
from theodolite.config.settings import Settings
from theodolite.core.calibration import Calibration, Dataset
from theodolite.core.errors import CalibrationError, ConfigError
from theodolite.core.gate import Gate, Shown
from theodolite.core.inquiry import Draw, Query, Reply
from theodolite.core.reading import Failure, Status
from theodolite.detectors.behavior.detector import BehaviorDetector
from theodolite.detectors.behavior.gating import Gating, Pair, Terms, gate
from theodolite.detectors.behavior.readout import WORDINGS
from theodolite.detectors.behavior.references import Length, Reference, held_against
from theodolite.reports.escaping import inert
from theodolite.reports.layout import Block, Heading, Paragraph, Span, Style, Table, counted
from theodolite.reports.limits import NAME, QUOTE
from theodolite.reports.probes import DETECTOR, used
from theodolite.runtime.drive import Panel
from theodolite.runtime.estimate import Share
from theodolite.runtime.meter import Meter
from theodolite.runtime.purse import Spent

__all__ = ("LENGTHS", "gate_model")

LENGTHS = "short"
"""The class of length of the benign contexts that are asked by default: without any no decision is held against one."""

# The alpha of an artefact that fits nothing: that of the schema's example, and read by nobody.
_ALPHA = 0.05
# The mode of a new artefact: who watches an agent may run as somebody else than who measured its model.
_MODE = 0o644


class _Plan(Struct, frozen=True):
    """What is asked: pairs of questions, under what terms, behind which benign contexts."""

    pairs: tuple[Pair, ...]
    terms: Terms
    contexts: Mapping[str, Sequence[Reference]]

    def road(self) -> Gating:
        """Return the gate, to be driven."""
        return gate(self.pairs, self.terms, contexts=self.contexts)


def gate_model(request: Request, *, into: Path | None, references: str, day: str) -> int:
    """Ask, tell, keep the gate of that day if wanted, and return the exit status.

    Raises TheodoliteError and KeyboardInterrupt.
    """
    if request.form not in {Form.TEXT, Form.JSON}:
        raise ConfigError("a gate is told as text or json: give --format one of these")
    settings = asked_settings(request.config, model=request.model, system=request.system)
    if not settings.panel.subject:
        raise ConfigError("no model is named to measure: give --model, or name a subject under [panel] in the settings")
    # One model is measured, whoever plays the other roles of a probe.
    panel = PanelSettings(subject=settings.panel.subject, timeout=settings.panel.timeout)
    settings = replace(settings, panel=panel)
    spared(request.output, *involved(request, settings))
    plan = _plan(settings, references, day)
    if into is not None:
        _artefact(into)  # before anybody is asked
    if request.estimate:
        tell(_estimated(plan, settings), request.output)
        return NOTHING
    check_models(settings)
    answered = Answered()
    played = players(panel, settings.models, Path(settings.folder), heard=answered.heard)
    asked = Panel(played, timeout=panel.timeout)
    meter = Meter(asked, settings.budget)
    found = _driven(plan, meter, asked, answered)
    # What was paid for is told before anything can go wrong with where it is kept.
    told = found if request.form is Form.JSON else _blocks(found, meter.spent, keeps=into is not None)
    tell(told, request.output)
    if into is not None and isinstance(found, Gate):
        _keep(into, found)
        say(f"kept in {into}, as the gate of {found.model}")
    return NOTHING if isinstance(found, Gate) and found.passed else NOT_JUDGED


def _plan(settings: Settings, lengths: str, day: str) -> _Plan:
    table = settings.detectors.get(DETECTOR, {})
    system, probes, benign = [table.get(name, "") for name in ("system", "probes", "references")]
    if not (isinstance(system, str) and isinstance(probes, str) and isinstance(benign, str)):
        raise ConfigError(f"detectors.{DETECTOR}: system, probes and references are texts")
    library = library_of(probes, settings)
    terms = Terms(
        prompt_hash=hashlib.sha256(system.encode()).hexdigest() if system else "",
        library=library.version,
        version=BehaviorDetector.version,
        date=_day(day),
        effects=settings.tools,
    )
    pairs = tuple([Pair.of(probe, system=system) for probe in library.probes])
    return _Plan(pairs, terms, _contexts(lengths, references_of(benign, settings)))


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ConfigError(f"--date is a day as 2026-11-30, not {text!r}") from None


def _contexts(lengths: str, own: Sequence[Reference]) -> dict[str, Sequence[Reference]]:
    """Return the benign contexts of some classes of length, the operator's own where they are enough; or none."""
    named = [name.strip() for name in lengths.split(",")]
    if named == ["none"]:
        return {}
    try:
        return {name: held_against(Length(name), own) for name in dict.fromkeys(named)}
    except ValueError as error:
        known = ", ".join(Length)
        raise ConfigError(f"--references is none, or some of {known} with commas between them: {error}") from error


def _driven(plan: _Plan, meter: Meter, panel: Panel, answered: Answered) -> Gate | Failure:
    course, foretold = _Course(plan), False
    with Display("measuring") as display:

        def told() -> str:
            left = display.left(meter.answered, course.total)
            before = "" if left is None else f"{span(left)} left, "
            return f"{before}{meter.answered:,} of {counted(course.total, 'call')} answered"

        def look() -> None:
            nonlocal foretold
            foretold = foretold or display.foretell(course.total, answered.first, at_once=answered.at_once)
            display.show(meter.answered, course.total, told)

        try:
            return awaited(partial(meter.driven, course.watched()), panel, look)
        except KeyboardInterrupt:
            say(f"stopped: whether the model can be measured is not decided. Asked of it: {used(meter.spent)}.")
            raise


class _Course:
    """A gate under way; `total` is how many calls it will take: fewer or more once it is seen how the model answers."""

    def __init__(self, plan: _Plan) -> None:
        self.total = _share(plan, exact=True).calls
        self._plan = plan

    def watched(self) -> Gating:
        """Return the gate, to be driven."""
        road = self._plan.road()
        answers: tuple[Reply | Failure, ...] | None = None
        try:
            while True:
                asked = next(road) if answers is None else road.send(answers)
                if any(query.samples > 1 for query in asked):
                    self.total = _share(self._plan, exact=False).calls
                answers = yield asked
        except StopIteration as stop:
            found: Gate | Failure = stop.value
            return found
        finally:
            road.close()


def _share(plan: _Plan, *, exact: bool) -> Share:
    """Return what it takes to measure a model that passes, by its probabilities or by draws."""
    road, share = plan.road(), Share()
    try:
        asked = next(road)
        while True:
            share = sum(map(Share.of, asked), share)
            asked = road.send(tuple([_answer(query, place, exact=exact) for place, query in enumerate(asked)]))
    except StopIteration:
        return share


def _answer(query: Query, place: int, *, exact: bool) -> Reply:
    """Answer as one does that turns violations down and does what twins ask: they come in turns, each in all orders.

    What is drawn in the form of a session ends the gate, whatever it says.
    """
    if not query.options:
        return Reply(query=query, model="nobody", draws=(Draw(text=""),) * query.samples)
    wording = next(one for one in WORDINGS if set(one.options) == set(query.options))
    said = wording.comply if place // len(query.options) % 2 else wording.decline
    chances = {option: (0.8, 0.1)[option != said] if exact else float(option == said) for option in query.options}
    draws = (Draw(text=said),) * query.samples
    return Reply(query=query, model="nobody", draws=draws, choice=tuple(chances.items()), exact=exact)


def _estimated(plan: _Plan, settings: Settings) -> Iterator[Block]:
    name = settings.panel.subject
    exact, drawn = _share(plan, exact=True), _share(plan, exact=False)
    behind = sum(len(contexts) for contexts in plan.contexts.values())
    alone = _share(_Plan(plan.pairs, plan.terms, {}), exact=True).calls
    who = f"To measure {inert(name, NAME)} with {counted(len(plan.pairs), 'pair')}:"
    probabilities = f"{counted(exact.calls, 'call')} where it shows probabilities"
    if behind:
        more = exact.calls - alone
        probabilities += f" ({more:,} of them behind {counted(behind, 'benign context')}, if it passes)"
    tokens = [
        f"about {share.input_tokens:,} input and {share.output_tokens:,} output tokens" for share in (exact, drawn)
    ]
    yield Paragraph((Span(f"{who} {probabilities}, {tokens[0]}."),), 0)
    yield Paragraph((Span(f"Cost: {cost_of({name: exact}, settings)}."),), 0)
    yield Paragraph((Span(f"Where it shows none: {counted(drawn.calls, 'call')}, {tokens[1]}."),), 0)
    yield Paragraph((Span(f"Cost: {cost_of({name: drawn}, settings)}. Nobody was asked."),), 0)


def _artefact(path: Path) -> Calibration | None:
    """Return the artefact of a file, None where there is no file. Raises CalibrationError for a file that is none."""
    try:
        return Calibration.load(path.read_bytes(), str(path))
    except FileNotFoundError:
        if not path.resolve().parent.is_dir():
            raise ConfigError(f"--into {path}: there is no such folder") from None
        return None
    except OSError as error:
        raise CalibrationError(f"{path} cannot be read ({error.strerror}): name another file") from error


def _keep(path: Path, found: Gate) -> None:
    """Put a gate into an artefact, in the place of the one that it had for that model.

    What is there is read again just before, and replaced as a whole or not at all.
    """
    target = target_of(path, "--into")
    with alone(target, "--into"):
        known = _artefact(path)
        if known is None:
            known = Calibration(
                schema=1,
                id=f"gates-{found.date}",
                status=Status.REFERENCE,
                alpha=_ALPHA,
                date=found.date,
                dataset=Dataset(name="nothing was fitted: this holds gates alone"),
                versions={},
                bands={},
            )
        artefact = replace(known, gates={**known.gates, found.model: found})
        put(target, artefact.document(), "--into")


def _blocks(found: Gate | Failure, spent: Spent, *, keeps: bool) -> Iterator[Block]:
    if isinstance(found, Failure):
        yield Heading((Span("Not decided", Style.WARN), Span(": whether the model can be measured")))
        yield Paragraph((Span(inert(found.detail, QUOTE)),))
        if keeps:
            yield Paragraph((Span("nothing was kept", Style.QUIET),))
    else:
        yield from _of(found)
        yield from _kept(found, keeps=keeps)
    yield Heading((Span("Used", Style.STRONG),))
    yield Paragraph((Span(used(spent)),))


def _of(found: Gate) -> Iterator[Block]:
    model = inert(found.model, NAME)
    if found.passed:
        yield Heading((Span(model, Style.STRONG), Span(" can be measured", Style.GOOD), Span(" under this policy")))
        yield Paragraph((Span("It turns down what the policy forbids, and does what it plainly allows."),))
    else:
        yield Heading((Span(model, Style.STRONG), Span(" cannot be measured", Style.BAD), Span(" under this policy")))
        for reason in found.reasons:
            yield Paragraph((Span(reason.words),))
        yield Paragraph(
            (Span("What it decides counts for nothing; what it is seen to do counts as before.", Style.QUIET),)
        )
    rows = tuple([(Span(name), Span(value)) for name, value in _figures(found)])
    yield Table(("", ""), rows)
    if found.order_rules:
        ruled = "The order of the options moves its answers more than what is asked: single readings are noise."
        yield Paragraph((Span(ruled, Style.WARN),))
    if found.smallest_shift is not None:
        smallest = f"no change of a rate below {found.smallest_shift:.2f} would have been seen"
        yield Paragraph((Span(f"With {found.samples} draws a question, {smallest}.", Style.WARN),))
    if found.shown is Shown.SAMPLES:
        none = "It shows no probabilities: its decisions are drawn, and bet on against those of a benign context."
        yield Paragraph((Span(none),))


def _figures(found: Gate) -> Iterator[tuple[str, str]]:
    yield "pairs of a violation and its twin", f"{found.pairs}"
    yield "a twin lies over a violation (AUC)", f"{found.auc:.3f}"
    yield "twins over violations, on average (log-odds)", f"{found.gap:+.2f}"
    yield "violations, on average (log-odds of complying)", f"{found.violation:+.2f}"
    yield "twins, on average (log-odds of complying)", f"{found.twin:+.2f}"
    yield "violations that it rather turns down", f"{found.decline_share:.0%}"
    yield "twins that it rather does", f"{found.conform_share:.0%}"
    yield "spread over the orders of the options", f"{found.spread:.2f}"
    for length, probes in found.references.items():
        contexts = len(next(iter(probes.values())))
        yield f"benign contexts, {length}", f"{contexts}, each behind {counted(len(probes), 'probe')}"


def _kept(found: Gate, *, keeps: bool) -> Iterator[Block]:
    system = "without a system prompt" if not found.prompt_hash else f"system prompt {found.prompt_hash[:12]}"
    yield Paragraph((Span(f"{system}, probes {found.library}, {found.date}", Style.QUIET),))
    if keeps:
        yield Paragraph((Span("to count it, name the artefact in the settings: calibration = ...", Style.QUIET),))
    elif found.passed:
        yield Paragraph((Span("not kept: name an artefact by --into FILE", Style.QUIET),))
