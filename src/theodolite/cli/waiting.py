"""Probes that are waited for until somebody stops it, and shown meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import partial

from theodolite.cli.answered import Answered
from theodolite.cli.progress import Progress
from theodolite.cli.stopping import Stop
from theodolite.core.policy import Decision
from theodolite.core.reading import Reading
from theodolite.detectors.behavior.detector import BehaviorState
from theodolite.reports.probes import DETECTOR
from theodolite.runtime.replay import Probing
from theodolite.runtime.session import Session

__all__ = ("Waiting",)

# Seconds between two looks at a stop and at the time: short for who pressed Ctrl-C, and ten times nothing.
_LOOK = 0.1


class Waiting:
    """A prober for `replay`: its answers are waited for with a look at `stop`, and shown by `progress`.

    `answered` counts the calls, `foresees` says how many a session will take. Once it is stopped, what is there is
    taken, and what is under way is cancelled: `cut` has those sessions, with how many of their probes were answered.
    """

    def __init__(
        self,
        prober: Probing,
        answered: Answered,
        foresees: Callable[[Session], int],
        stop: Stop,
        progress: Progress,
    ) -> None:
        self.cut: dict[str, int] = {}
        self._prober = prober
        self._answered = answered
        self._foresees = foresees
        self._stop = stop
        self._progress = progress

    @property
    def reason(self) -> str:
        """Return why sessions are probed."""
        return self._prober.reason

    @property
    def probes(self) -> int:
        """Return how many probes each session is put."""
        return self._prober.probes

    @property
    def ahead(self) -> int:
        """Return how many sessions may be under way at once."""
        return self._prober.ahead

    def probe(self, session: Session) -> Future[tuple[Decision, ...]]:
        """Have a session probed, unless it is stopped."""
        if self._stop.error is not None:
            self.cut[session.id] = 0
            nothing: Future[tuple[Decision, ...]] = Future()
            nothing.set_result(())
            return nothing
        foreseen = self._foresees(session)
        self._progress.probes.sessions += 1
        self._progress.probes.foreseen += foreseen
        answers = self._prober.probe(session)
        answers.add_done_callback(partial(self._count, session, foreseen))
        return _Answers(answers, self, session)

    def waited(self, answers: Future[tuple[Decision, ...]], session: Session) -> tuple[Decision, ...]:
        """Return the answers when they are there, or nothing once it is stopped."""
        while self._stop.error is None and not answers.done():
            wait((answers,), _LOOK)
            self._look()
        if not answers.done():
            state = session.recall(DETECTOR)
            self.cut[session.id] = state.accumulator.scored if isinstance(state, BehaviorState) else 0
            answers.cancel()
            return ()
        return answers.result()

    def _look(self) -> None:
        probes = self._progress.probes
        probes.answered, probes.first, probes.at_once = (
            self._answered.calls,
            self._answered.first,
            self._answered.at_once,
        )
        self._progress.show()

    def _count(self, session: Session, foreseen: int, answers: Future[tuple[Decision, ...]]) -> None:
        """Count a session that is over, with the calls that it took: none still come where nobody answered."""
        if not answers.cancelled() and answers.exception() is None:
            self._progress.probes.over += 1
            said = [signal.said for decision in answers.result() for signal in decision.signals]
            answered = any(isinstance(one, Reading) for one in said)
            self._progress.probes.foreseen += (session.spent.calls if answered else 0) - foreseen


class _Answers(Future[tuple[Decision, ...]]):
    """Answers under way, of a session."""

    def __init__(self, under: Future[tuple[Decision, ...]], waiting: Waiting, session: Session) -> None:
        super().__init__()
        self._under = under
        self._waiting = waiting
        self._session = session

    def result(self, timeout: float | None = None) -> tuple[Decision, ...]:
        """Return what followed from the answers; nothing once it is stopped."""
        del timeout  # nobody gives one
        return self._waiting.waited(self._under, self._session)
