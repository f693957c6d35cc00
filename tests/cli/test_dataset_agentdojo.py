"""Made sessions go below a new folder, and what was made is told."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from typer.testing import Result

from theodolite.calibration.agentdojo import ATTACKS, Made, Pair
from theodolite.cli.making import make_sessions
from theodolite.core.errors import ConfigError
from theodolite.core.labels import Known, Label


class Fake:
    """Makes a file of each pair but for those of the user's task 2."""

    suites = ("banking", "slack")
    attacks = ("direct", "ignore_previous", "important_instructions", "injecagent")

    def __init__(self) -> None:
        self.asked: list[object] = []

    def pairs(self, suites: Sequence[str], attacks: Sequence[str], limit: int | None = None) -> list[Pair]:
        self.asked = [tuple(suites), tuple(attacks), limit]
        clean = [Pair(suite, f"user_task_{number}") for suite in suites for number in range(3)]
        met = [
            Pair(pair.suite, pair.task, attack, "injection_task_0", obeys=True) for pair in clean for attack in attacks
        ]
        return clean + met

    def make(self, pair: Pair) -> Made | None:
        if pair.task == "user_task_2":
            return None
        known = Known.DRIFTED if pair.obeys else Known.CLEAN
        return Made(path=pair.path, data=str(pair).encode(), label=Label(session=str(pair.path), known=known))


def make(folder: Path, *, suites: Sequence[str] = (), attacks: Sequence[str] = (), limit: int | None = None) -> Fake:
    fake = Fake()
    assert make_sessions(folder, suites=suites, attacks=attacks, limit=limit, benchmark=lambda: fake) == 0
    return fake


def test_each_session_is_a_file_and_what_was_made_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "a" / "runs"
    make(folder, suites=["banking"], attacks=["direct", "direct"])
    files = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*.json"))
    assert files == [
        "ground-truth-hijacked/banking/user_task_0/direct/injection_task_0.json",
        "ground-truth-hijacked/banking/user_task_1/direct/injection_task_0.json",
        "ground-truth/banking/user_task_0/none/none.json",
        "ground-truth/banking/user_task_1/none/none.json",
    ]
    told = capsys.readouterr()
    assert told.out == ""
    assert f"made 2 clean and 2 drifted in {folder}; 2 pairs left out" in told.err
    assert f"next: theodolite calibrate {folder}" in told.err


def test_unless_named_all_suites_and_three_attacks_are_meant(tmp_path: Path) -> None:
    assert make(tmp_path / "runs").asked == [("banking", "slack"), ATTACKS, None]
    some = make(tmp_path / "some", suites=["slack", "slack"], attacks=["injecagent"], limit=7)
    assert some.asked == [("slack",), ("injecagent",), 7]


@pytest.mark.parametrize(
    ("suites", "attacks", "said"),
    [
        (["bank"], [], "--suite 'bank': there is none; did you mean"),
        ([], ["manual"], "--attack 'manual': there is none;"),
    ],
)
def test_a_name_that_there_is_not_makes_nothing(
    tmp_path: Path, suites: list[str], attacks: list[str], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        make(tmp_path / "runs", suites=suites, attacks=attacks)
    assert not (tmp_path / "runs").exists()


def test_nothing_is_written_among_other_files(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    for folder in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(ConfigError, match="name a new"):
            make(folder)
    (tmp_path / "loop").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="is no folder"):
        make(tmp_path / "loop")
    (tmp_path / "empty").mkdir()
    make(tmp_path / "empty")


def test_a_place_that_takes_nothing_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot be written"):
        make(tmp_path / "file" / "runs")


def test_without_the_package_nothing_is_made_and_the_extra_is_named(
    theodolite: Callable[..., Result], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "agentdojo", None)
    done = theodolite("dataset", "agentdojo", home / "runs")
    assert done.exit_code == 2
    assert "pip install 'theodolite[agentdojo]'" in done.stderr
    assert not (home / "runs").exists()
