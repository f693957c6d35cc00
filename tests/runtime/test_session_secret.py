"""What canaries and choices are drawn from: the same for the same secret and session, and shown to nobody."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from dataclasses import dataclass, field

import pytest
import rich.pretty

from theodolite.core.detector import AnyDetector
from theodolite.core.errors import ConfigError
from theodolite.core.event import Event, TurnEnded
from theodolite.core.inquiry import Draw, Reply
from theodolite.core.policy import Decision
from theodolite.core.window import Window
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.replay import Sighting, replay
from theodolite.runtime.saved import decoded
from theodolite.runtime.session import Session
from theodolite.stores.memory import MemoryStore
from theodolite.testing.fakes import AskingDetector, MemoryShelf, QuietDetector, ScriptedDetector, Tally
from theodolite.testing.sessions import hijacked_session, stamped

SECRET = bytes(range(100, 132))
LABELS = ("canary 1", "canary 2", "order")


@dataclass(frozen=True, kw_only=True)
class Drawing(QuietDetector):
    """Draws at the end of each turn, as a detector that plants canaries does."""

    drawn: list[bytes] = field(default_factory=list[bytes])

    def update(self, state: Tally, event: Event, window: Window) -> tuple[()]:
        super().update(state, event, window)
        if isinstance(event, TurnEnded):
            self.drawn.append(window.draw(f"turn {event.seq}"))
        return ()


def draws(session: Session) -> list[str]:
    window = decoded(session.save()).memory.window
    return [window.draw(label).hex() for label in LABELS]


def test_the_same_secret_and_id_give_the_same_draws() -> None:
    assert draws(Monitor(secret=SECRET).session("s-1")) == draws(Monitor(secret=SECRET).session("s-1"))


def test_each_session_label_and_secret_gives_draws_of_its_own() -> None:
    monitors = [Monitor(secret=SECRET), Monitor(secret=SECRET[::-1])]
    found = [
        draw for monitor in monitors for name in ("s-1", "s-2", "") for draw in draws(monitor.session(name or "s"))
    ]
    assert len(set(found)) == 2 * 3 * len(LABELS)


def test_without_a_secret_no_two_runs_draw_alike() -> None:
    first, other = [draws(Monitor().session("s-1")) for _ in range(2)]
    assert first != other


def test_an_id_that_is_opened_again_draws_anew_and_by_a_secret_as_before() -> None:
    """What was planted before is known to whoever saw it."""
    runs: list[list[list[str]]] = []
    for _ in range(2):
        monitor, found = Monitor(secret=SECRET), list[list[str]]()
        for _ in range(3):
            session = monitor.session("s-1")
            found.append(draws(session))
            session.close()
        runs.append(found)
    assert runs[0] == runs[1]
    assert len({tuple(found) for found in runs[0]}) == 3


def test_draws_are_the_same_in_another_process() -> None:
    program = f"""
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.saved import decoded
window = decoded(Monitor(secret=bytes(range(100, 132))).session("s-1").save()).memory.window
print(*[window.draw(label).hex() for label in {LABELS!r}])
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == draws(Monitor(secret=SECRET).session("s-1"))


@pytest.mark.parametrize("other", [SECRET, SECRET[::-1], None])
def test_a_session_that_is_moved_goes_on_drawing_from_its_own_secret(other: bytes | None) -> None:
    detector = Drawing()
    whole = Monitor([detector], secret=SECRET).session("s-1")
    for _ in range(4):
        whole.observe(TurnEnded())
    expected = list(detector.drawn)
    detector.drawn.clear()
    session = Monitor([detector], secret=SECRET).session("s-1")
    for _ in range(4):
        session.observe(TurnEnded())
        session = Monitor([detector], secret=other).restore(session.save())
    assert detector.drawn == expected
    assert len(set(expected)) == 4


def test_a_recovered_session_goes_on_drawing_from_its_own_secret() -> None:
    shelf = MemoryShelf()
    with Monitor([AskingDetector()], shelf=shelf) as first:
        session = first.session("s-1")
        session.request_probe("r")
        before = draws(session)
    [back] = Monitor([AskingDetector()], shelf=shelf).recover()
    assert draws(back) == before


@pytest.mark.parametrize("secret", [b"", b"short", bytes(15)])
def test_a_secret_that_could_be_guessed_is_refused(secret: bytes) -> None:
    with pytest.raises(
        ConfigError, match=rf"the secret has {len(secret)} bytes: give at least 16 random ones, or None"
    ):
        Monitor(secret=secret)


# -- nobody sees it ---------------------------------------------------------------------------------------------------


def forms(secret: bytes) -> list[str]:
    return [secret.hex(), base64.b64encode(secret).decode(), repr(secret)[2:-1], str(list(secret))[1:-1]]


def test_the_secret_is_in_no_record_no_decision_and_no_report() -> None:
    store = MemoryStore()
    detectors: list[AnyDetector] = [AskingDetector(), ScriptedDetector(script={TurnEnded: 0.75})]
    instrument = Monitor(detectors, secret=SECRET, store=store)
    shown: list[Decision | Sighting] = []
    session = instrument.session("s-1")
    own = decoded(session.save()).memory.window.secret
    shown += [session.observe(event) for event in hijacked_session()]
    shown.append(session.request_probe("r"))
    shown += session.drain_sync(lambda query: Reply(query=query, model="m-1", draws=(Draw(text="no"),)))
    shown += session.close()
    shown += [seen for seen in replay(stamped(hijacked_session()), instrument) if isinstance(seen, Sighting)]
    told = repr(shown) + repr([repr(record) for record in store.read()])
    assert len(told) > 1_000
    assert not [form for secret in (SECRET, own) for form in forms(secret) if form in told]


def test_the_secret_is_in_no_repr() -> None:
    session = Monitor([QuietDetector()], secret=SECRET).session("s-1")
    session.observe(TurnEnded())
    saved = decoded(session.save())
    window = saved.memory.window
    assert len(window.secret) == 32
    for thing in (session, saved, saved.memory, window, Monitor(secret=SECRET), Monitor(secret=SECRET).fleet):
        for told in (repr(thing), str(thing), rich.pretty.pretty_repr(thing)):
            assert not [form for secret in (SECRET, window.secret) for form in forms(secret) if form in told]
    assert repr(window) == f"Window(first=0, events=1, held={window.held})"
