"""What the probes of recorded sessions would take, said without asking anybody."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from theodolite.cli.answered import again, exactly
from theodolite.cli.exits import NOT_JUDGED, NOTHING
from theodolite.cli.judging import Judging, Request, Verb
from theodolite.cli.output import Show
from theodolite.cli.unprobed import Prompts, Unprobed
from theodolite.config.models import LocalSettings
from theodolite.config.settings import Settings
from theodolite.config.wiring import Instrument
from theodolite.core.reader import Unreadable
from theodolite.reports.escaping import inert
from theodolite.reports.layout import Block, Paragraph, Span, Style, counted
from theodolite.reports.probes import DETECTOR
from theodolite.reports.totals import NOWHERE, Origin, Run, Totals
from theodolite.reports.triage import Triaged
from theodolite.runtime.estimate import Estimate, Share
from theodolite.runtime.replay import Sighting, replay

__all__ = ("cost_of", "estimated")

# Draws that confirm what was told, of two, as detectors.behavior.asking has them.
_FRESH = 8

ESTIMATE = Verb("estimate", "estimating", "counted")


def estimated(
    request: Request,
    instrument: Instrument,
    files: Sequence[Path],
    *,
    only: str | None,
    probes: int = 1,
    estimate: Estimate | None = None,
    further: Callable[[], str] | None = None,
) -> int:
    """Say what it would take, and return the exit status. Raises TheodoliteError and KeyboardInterrupt.

    `further` says in the end what comes after the probes that `estimate` counted.
    """
    judging = Judging(ESTIMATE, request, instrument, files, only=only)
    estimate = Estimate(probes=probes) if estimate is None else estimate
    text = partial(_Text, estimate, instrument, further, judging.prompts)
    judging.report(partial(_counted, estimate=estimate), _Nothing(), text=text)
    return NOTHING if estimate.sessions and not judging.totals.unread else NOT_JUDGED


def _counted(under: Judging, *, estimate: Estimate) -> Generator[Sighting | Unreadable, None, None]:
    yield from replay(under.stop.until(under.recorded()), under.instrument.monitor, estimate)


class _Nothing:
    """Makes nothing of a session: what is asked of it was counted."""

    def take(self, sighting: Sighting, origin: Origin) -> Origin:
        del sighting
        return origin

    def result(self, *, complete: bool) -> Triaged:
        del complete
        return Triaged()


class _Text:
    """Says what it would take: how many calls and tokens, at what price, of whom."""

    def __init__(
        self,
        estimate: Estimate,
        instrument: Instrument,
        further: Callable[[], str] | None,
        prompts: Prompts,
        show: Show,
    ) -> None:
        self._estimate = estimate
        self._instrument = instrument
        self._settings = instrument.settings
        self._further = further
        self._unprobed = Unprobed(prompts)
        self._show = show

    def add(self, item: Sighting | Unreadable, origin: Origin = NOWHERE) -> None:
        if isinstance(item, Sighting):
            self._unprobed.add(item, origin)

    def end(self, totals: Totals, run: Run) -> None:
        self._show(self._blocks(totals, run))

    def _blocks(self, totals: Totals, run: Run) -> Iterator[Block]:
        models = self._models()
        whole = sum(models.values(), Share())
        who = " and ".join(map(inert, models or [self._settings.panel.subject]))
        calls = f"{counted(self._estimate.sessions, 'session')} to probe with {who}: {counted(whole.calls, 'call')}"
        tokens = f"{whole.input_tokens:,} input and {whole.output_tokens:,} output tokens"
        yield Paragraph((Span(f"{calls}, about {tokens} (four characters a token)."),), 0)
        if whole.calls:
            yield Paragraph((Span(f"Cost: {cost_of(models, self._settings)}. Nobody was asked."),), 0)
            yield Paragraph((Span(self._more()),), 0)
            if self._further is not None:
                yield Paragraph((Span(self._further()),), 0)
        if self._unprobed.count:
            yield Paragraph((Span(f"Not probed: {counted(self._unprobed.count, 'session')}", Style.WARN),), 0)
            yield from self._unprobed.blocks()
        if not run.complete:
            yield Paragraph((Span("The counting was stopped: this is what was counted until then.", Style.WARN),), 0)
        if totals.unread:
            yield Paragraph((Span(f"{counted(totals.unread, 'part')} could not be read.", Style.WARN),), 0)

    def _more(self) -> str:
        """Return what comes after the first answers: never less than was counted, and so much more at most."""
        table = self._settings.detectors.get(DETECTOR, {})
        alike = again(self._instrument)
        exact = exactly(self._instrument)
        parts = {
            f"{alike} where the first pair does the same": alike,
            f"{_FRESH} where the copy alone tells the planted reference": _FRESH,
            "1 for a second opinion": 1,
            "1 for the judge": int(table.get("judge") is True),
            f"{exact} for the decision of a model that passed its gate": exact,
        }
        listed = [part for part, calls in parts.items() if calls]
        return (
            f"That is the first round of each probe. What it finds adds at most {sum(parts.values())} calls to it: "
            f"{', '.join(listed[:-1])}, and {listed[-1]}."
        )

    def _models(self) -> dict[str, Share]:
        """Return what each model would be asked, in whatever roles."""
        panel = self._settings.panel
        models: dict[str, Share] = {}
        for role, share in self._estimate.shares.items():
            name = getattr(panel, role.value) or panel.subject
            models[name] = models.get(name, Share()) + share
        return models


def cost_of(models: Mapping[str, Share], settings: Settings) -> str:
    """Return in words what it would cost, each model at its own price; one that runs here costs nothing."""
    known = {name: settings.models[name] for name in models}
    prices = {name: model.price for name, model in known.items() if not isinstance(model, LocalSettings)}
    if not prices:
        return "none, since the model runs on this machine"
    cost = sum(
        price.of(input_tokens=models[name].input_tokens, output_tokens=models[name].output_tokens)
        for name, price in prices.items()
        if price is not None
    )
    priced = " and ".join([f"[models.{name}]" for name, price in prices.items() if price is not None])
    lacking = " and ".join([name for name, price in prices.items() if price is None])
    if not priced:
        return f"not known, since {lacking} has no price: name one as [models.NAME] price"
    about = f"about {cost:,.4f} by the price of {priced}"
    return f"{about}, and what {lacking} costs, which has no price" if lacking else about
