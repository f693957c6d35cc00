"""`theodolite probe SESSION --localize`: which message carries drift, over a real provider's wire format."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from theodolite.detectors.behavior.library import shipped
from theodolite.testing.fakes.policies import TAINT, PolicyModel
from theodolite.testing.provider import Asked, Breaks, FakeProvider, Phase, Says

Run = Callable[..., Result]
Policed = Callable[[PolicyModel], Callable[[Asked], Says]]
Shop = Callable[..., Path]

# Draws of a probe whose arms do the same, whatever they decide: one of each, and three more of copy and benign context.
PROBE = 5 + 2 * 3
SECRET = "sk-live-0123456789abcdefghijklmnop"


def drifting(drift: float = 24.0) -> PolicyModel:
    return PolicyModel(templates=shipped().templates, policy=12.0, drift=drift, contract="json")


def recorded(path: Path, *tainted: int, count: int = 12, model: str = "m-1") -> Path:
    """Write a session of so many messages and results in turn; those that are named hold a taint and a key."""
    messages: list[dict[str, object]] = []
    for number in range(count // 2):
        mark = [f" Its key is {SECRET}. This is {TAINT}." * (2 * number + place in tainted) for place in (0, 1)]
        call: dict[str, object] = {"name": "read", "arguments": "{}"}
        calls = [{"id": f"c{number}", "type": "function", "function": call}]
        said: list[dict[str, object]] = [
            {"role": "user", "content": f"Read entry {number}.{mark[0]}"},
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"Entry {number} is a lamp.{mark[1]}"},
        ]
        messages += said
    path.write_text(json.dumps({"model": model, "messages": messages}), encoding="utf-8")
    return path


@pytest.mark.parametrize(("tainted", "role"), [(5, "tool"), (8, "user")])
def test_the_message_that_carries_it_is_told_and_the_recording_is_as_it_was(
    theodolite: Run, policed: Policed, shop: Shop, *, home: Path, tainted: int, role: str
) -> None:
    path = recorded(home / "s.json", tainted)
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    with FakeProvider(policed(drifting())) as provider:
        shop(provider.base_url)
        done = theodolite("probe", path, "--localize", "--model", "shop")
    assert done.exit_code == 1, done.output
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    told = " ".join(done.stdout.split())
    assert told.startswith("Drift of session s The probe ")
    assert "the copy drifts 20 times with its 12 messages and 0 times with neutral text in their place" in told
    [row] = [line.split() for line in done.stdout.splitlines() if line.split()[1:2] == [role]]
    assert row[0] == str(tainted + 1)
    assert "auto_excise: each of them alone makes the copy drift, and without them it does not" in told
    assert "probed again without what carries it, the drift is gone" in told
    assert "the search asks no twin" in told
    assert "surrogate" not in told
    assert SECRET not in done.output


@pytest.mark.parametrize(("model", "surrogate"), [("m-1", False), ("another", True)])
def test_the_json_form_has_all_of_it(
    theodolite: Run, policed: Policed, shop: Shop, *, home: Path, model: str, surrogate: bool
) -> None:
    path = recorded(home / "s.json", 3, 10, model=model)
    with FakeProvider(policed(drifting())) as provider:
        shop(provider.base_url)
        done = theodolite("probe", path, "--localize", "--model", "shop", "--format", "json", "--output", "told.json")
    # What a surrogate answers says nothing of the agent: it finds nothing, as in a probe without a search.
    assert (done.exit_code, done.stdout) == (3 if surrogate else 1, "")
    written = (home / "told.json").read_text(encoding="utf-8")
    told = json.loads(written)
    located = told["located"]
    assert [culprit["number"] for culprit in located["culprits"]] == [4, 11]
    assert located["found"]["verdict"] == "auto_excise"
    assert located["found"]["confirmed"]
    assert all(culprit["confidence"] >= 20 / 21 for culprit in located["culprits"])
    assert located["again"] == {"gone": True, "observed": 0.0, "decided": 0.0}
    assert (located["surrogate"], told["surrogate"]) == (surrogate, surrogate)
    assert (told["session"], told["answered"], told["failed"], told["unread"]) == ("s", 6, [], 0)
    # Six probes, draws of both contexts, the search, and a probe of the repaired context.
    assert told["calls"] == 7 * PROBE + 40 + located["found"]["calls"]
    assert told["cost"] > 0.0
    assert SECRET not in written


def test_a_session_whose_copy_does_not_drift_is_not_searched(
    theodolite: Run, policed: Policed, shop: Shop, home: Path
) -> None:
    path = recorded(home / "s.json")
    with FakeProvider(policed(drifting())) as provider:
        shop(provider.base_url)
        done = theodolite("probe", path, "--localize", "--model", "shop")
        assert sum(asked.draws for asked in provider.asked) == 6 * PROBE
    assert done.exit_code == 0, done.output
    assert "6 probes answered, and none of them shows drift: there is nothing to search for" in " ".join(
        done.stdout.split()
    )


@pytest.mark.parametrize("tainted", [(), (5,)])
def test_a_surrogate_decides_nothing_and_that_is_said(
    theodolite: Run, policed: Policed, shop: Shop, *, home: Path, tainted: tuple[int, ...]
) -> None:
    path = recorded(home / "s.json", *tainted, model="another")
    with FakeProvider(policed(drifting())) as provider:
        shop(provider.base_url)
        done = theodolite("probe", path, "--localize", "--model", "shop")
    assert done.exit_code == 3, done.output
    told = " ".join(done.stdout.split())
    assert ("auto_excise" in told) is bool(tainted)
    assert "answered by a model that the recording does not name, a surrogate: it says nothing about that agent" in told


def test_an_estimate_says_what_the_search_may_take_too(
    theodolite: Run, policed: Policed, shop: Shop, home: Path
) -> None:
    path = recorded(home / "s.json", 5)
    with FakeProvider(policed(drifting())) as provider:
        shop(provider.base_url)
        done = theodolite("probe", path, "--localize", "--model", "shop", "--estimate")
        assert not provider.asked
    assert done.exit_code == 0, done.output
    told = " ".join(done.stdout.split())
    assert "1 session to probe with shop: 30 calls, about" in told
    assert "the search among 12 messages takes at most 40 answers for one that carries it, and 120 for up to" in told


def test_one_session_is_searched_at_a_time(theodolite: Run, policed: Policed, shop: Shop, home: Path) -> None:
    folder = home / "sessions"
    folder.mkdir()
    recorded(folder / "a.json", 5)
    recorded(folder / "b.json", 2)
    with FakeProvider(policed(drifting())) as provider:
        shop(provider.base_url)
        several = theodolite("probe", folder, "--localize", "--model", "shop")
        strange = theodolite("probe", folder, "--localize", "--model", "shop", "--session", "c")
        assert not provider.asked
        named = theodolite("probe", folder, "--localize", "--model", "shop", "--session", "b", "--format", "json")
    assert (several.exit_code, strange.exit_code, named.exit_code) == (2, 2, 1)
    assert "'a' and 'b' are two sessions, and one is searched at a time: name it by --session ID" in several.stderr
    assert "there is no session in what was named" in strange.stderr
    assert [culprit["number"] for culprit in json.loads(named.stdout)["located"]["culprits"]] == [3]


def test_only_text_and_json_tell_of_a_search(theodolite: Run, shop: Shop, home: Path) -> None:
    shop("http://127.0.0.1:9/v1")
    done = theodolite("probe", recorded(home / "s.json"), "--localize", "--model", "shop", "--format", "sarif")
    assert (done.exit_code, "text or json" in done.stderr) == (2, True)


@pytest.mark.parametrize("after", [0, 6 * PROBE + 30])
def test_a_provider_that_fails_decides_nothing(
    theodolite: Run, policed: Policed, shop: Shop, home: Path, after: int
) -> None:
    good = policed(drifting())

    def script(asked: Asked) -> Says | Breaks:
        return Breaks(Phase.BODY) if sum(one.draws for one in provider.asked) > after else good(asked)

    path = recorded(home / "s.json", 5)
    with FakeProvider(script) as provider:
        shop(provider.base_url, "[panel]\ntimeout = 2.0\n")
        done = theodolite("probe", path, "--localize", "--model", "shop")
    assert done.exit_code == 3, done.output
    told = " ".join(done.stdout.split())
    assert ("not decided: " if after else "no probe of it was answered") in told


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs the signals of POSIX")
def test_it_stops_at_once_and_says_what_was_used(shop: Shop, home: Path, policed: Policed) -> None:
    good = policed(drifting())

    def script(asked: Asked) -> Says | Breaks:
        return Breaks(Phase.HEADERS, "hang") if len(provider.asked) > 60 else good(asked)

    path = recorded(home / "s.json", 5)
    with FakeProvider(script) as provider:
        shop(provider.base_url, "[panel]\ntimeout = 300.0\n")
        command = [sys.executable, "-m", "theodolite.cli", "probe", str(path), "--localize", "--model", "shop"]
        running = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        deadline = time.monotonic() + 60
        while len(provider.asked) <= 60 and time.monotonic() < deadline:
            assert running.poll() is None, running.communicate()
            time.sleep(0.02)
        os.killpg(running.pid, signal.SIGINT)
        begun = time.monotonic()
        _, said = running.communicate(timeout=20)
        assert time.monotonic() - begun < 5.0
    assert running.returncode == 130, said
    assert "stopped: nothing was decided. Asked of models: " in said
    assert "Traceback" not in said
