"""Probes that are waited for until somebody stops it, and shown meanwhile."""

from __future__ import annotations

from concurrent.futures import Future, wait
from functools import partial

from theodolite.cli.progress import Progress
from theodolite.cli.stopping import Stop
from theodolite.core.policy import Decision
from theodolite.core.reading import Reading
from theodolite.runtime.purse import Purse
from theodolite.runtime.replay import Probing
from theodolite.runtime.session import Session

__all__ = ("Waiting",)

# Seconds between two looks at a stop and at the time: short for who pressed Ctrl-C, and ten times nothing.
_LOOK = 0.1


class Waiting:
    """A prober for `replay`: its answers are waited for with a look at `stop`, and shown by `progress`.

    Once it is stopped, what is there is taken, and what is under way is cancelled: `cut` has those sessions.
    """

    def __init__(self, prober: Probing, purse: Purse, stop: Stop, progress: Progress) -> None:
        self.cut: set[str] = set()
        self._prober = prober
        self._purse = purse
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
            self.cut.add(session.id)
            nothing: Future[tuple[Decision, ...]] = Future()
            nothing.set_result(())
            return nothing
        self._progress.probes.sessions += 1
        answers = self._prober.probe(session)
        answers.add_done_callback(partial(self._count, session))
        return _Answers(answers, self, session.id)

    def waited(self, answers: Future[tuple[Decision, ...]], session: str) -> tuple[Decision, ...]:
        """Return the answers when they are there, or nothing once it is stopped."""
        while self._stop.error is None and not answers.done():
            wait((answers,), _LOOK)
            self._progress.probes.asked = self._purse.spent.calls
            self._progress.show()
        if not answers.done():
            self.cut.add(session)
            answers.cancel()
            return ()
        return answers.result()

    def _count(self, session: Session, answers: Future[tuple[Decision, ...]]) -> None:
        """Count a session that is over; its calls as answered where anything was read of an answer."""
        if not answers.cancelled() and answers.exception() is None:
            self._progress.probes.over += 1
            said = [signal.said for decision in answers.result() for signal in decision.signals]
            if any(isinstance(one, Reading) for one in said):
                self._progress.probes.answered += session.spent.calls


class _Answers(Future[tuple[Decision, ...]]):
    """Answers under way, of a session."""

    def __init__(self, under: Future[tuple[Decision, ...]], waiting: Waiting, session: str) -> None:
        super().__init__()
        self._under = under
        self._waiting = waiting
        self._session = session

    def result(self, timeout: float | None = None) -> tuple[Decision, ...]:
        """Return what followed from the answers; nothing once it is stopped."""
        del timeout  # nobody gives one
        return self._waiting.waited(self._under, self._session)
