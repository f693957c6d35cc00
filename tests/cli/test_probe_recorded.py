"""Sessions that were probed while they were recorded: what they were put then uses nothing up of what is now asked."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from theodolite.cli.recordings import probed_before
from theodolite.core.event import MessageObserved, ModelCalled, SessionEnded, Source
from theodolite.core.inquiry import Role
from theodolite.detectors.behavior.detector import BehaviorDetector, BehaviorSettings
from theodolite.detectors.behavior.library import shipped
from theodolite.detectors.behavior.probe import ProbeType
from theodolite.detectors.behavior.schedule import ScheduleSettings
from theodolite.runtime.drive import Panel
from theodolite.runtime.monitor import Monitor
from theodolite.runtime.recorder import Recorder
from theodolite.testing.fakes.policies import PolicyModel
from theodolite.testing.provider import Asked, FakeProvider, Says

Run = Callable[..., Result]
KEY = b"0123456789abcdef0123456789abcdef"
AT_ONCE = ScheduleSettings(jitter_seconds=0.0, cooldown_window_seconds=0.0)
COMPARED = {f"behavior.{kind}" for kind in ProbeType}


def policy() -> PolicyModel:
    return PolicyModel(templates=shipped().templates, contract="json")


@pytest.fixture
def lived(home: Path) -> Path:
    """Return the recording of a session that was asked for four probes while it ran."""
    (home / "raw").mkdir()
    (home / "key").write_bytes(KEY)
    model = policy()
    panel = Panel(dict.fromkeys((Role.SUBJECT, Role.SHADOW, Role.BASELINE), model))
    detector = BehaviorDetector(BehaviorSettings(schedule=AT_ONCE, scheduled=False))
    with (
        Monitor([detector], panel=panel, recorder=Recorder(home / "raw", KEY)) as monitor,
        monitor.session("live-1") as session,
    ):
        session.observe(MessageObserved(role="user", text="Where is my order?", source=Source.USER))
        session.observe(ModelCalled(model="m-1"))
        for _ in range(4):
            session.request_probe("manual")
            session.drain_sync()
        session.observe(SessionEnded())
    (file,) = (home / "raw").iterdir()
    return file


@pytest.mark.parametrize("number", [3, 6])
def test_a_session_gets_as_many_probes_as_are_asked_for(
    theodolite: Run,
    lived: Path,
    shop: Callable[..., Path],
    policed: Callable[[PolicyModel], Callable[[Asked], Says]],
    number: int,
) -> None:
    with FakeProvider(policed(policy())) as provider:
        shop(provider.base_url, '[store]\nkey_file = "key"\n')
        done = theodolite("probe", lived, "--model", "shop", "--probes", str(number), "--format", "json")
    assert done.exit_code == 0, done.output
    (session,) = json.loads(done.stdout)["sessions"]
    put = [signal for signal in session["signals"] if signal["code"] in COMPARED and signal["models"] == ["m-1"]]
    assert len(put) == number
    assert session["probed"]["failed"] == 0
    assert f"by {number} probes and " in session["probed"]["text"]


def test_what_was_put_before_is_counted_also_where_it_is_packed(lived: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(lived.read_bytes()))
    assert probed_before([lived]) == probed_before([packed]) == 4
    assert probed_before([]) == 0


@pytest.mark.parametrize("held", [b"", b"\x1f\x8bno gzip", b'{"messages": ["ProbeRequested"]}\n' * 3, b'{"theodolite"'])
def test_in_other_files_nothing_is_counted(tmp_path: Path, held: bytes) -> None:
    file = tmp_path / "other.json"
    file.write_bytes(held)
    assert probed_before([file, tmp_path / "gone", tmp_path]) == 0
