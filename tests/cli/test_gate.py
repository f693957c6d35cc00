"""`theodolite probe --gate`: a model over a real provider's wire format, what it is found to be, and what is kept."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from theodolite.core.calibration import Band, Calibration, Dataset
from theodolite.core.gate import Gate, Shown
from theodolite.core.reading import Status
from theodolite.detectors.behavior.library import shipped
from theodolite.testing.fakes.policies import PolicyModel
from theodolite.testing.provider import Asked, Breaks, FakeProvider, Phase, Says

Run = Callable[..., Result]
Policed = Callable[[PolicyModel], Callable[[Asked], Says]]
Shop = Callable[..., Path]

PAIRS = len(shipped().templates)
ALONE = PAIRS * 6  # violation and twin, each in three orders
SYSTEM = "You are the assistant of a shop."


def model(**changes: float | str) -> PolicyModel:
    made = PolicyModel(templates=shipped().templates, policy=3.0, scatter=0.3, wobble=0.3)
    for name, value in changes.items():
        assert hasattr(made, name)
        setattr(made, name, value)
    return made


@pytest.fixture
def prompt(home: Path) -> Path:
    path = home / "prompt.txt"
    path.write_text(SYSTEM, encoding="utf-8")
    return path


def test_a_model_that_reads_the_policy_passes_and_its_gate_is_kept(
    theodolite: Run, policed: Policed, shop: Shop, prompt: Path, home: Path
) -> None:
    with FakeProvider(policed(model())) as provider:
        shop(provider.base_url)
        arguments = ("--system", prompt, "--into", "bank.json", "--date", "2026-11-30")
        done = theodolite("probe", "--gate", "--model", "shop", *arguments)
    assert done.exit_code == 0, done.output
    told = " ".join(done.stdout.split())
    assert told.startswith("m-1 can be measured under this policy")
    assert "a twin lies over a violation (AUC) 1.000" in told
    assert "benign contexts, short 40, each behind 6 probes" in told
    assert f"{ALONE + 40 * 36:,} calls, " in told
    assert "cost 0.0" in told
    assert len(provider.asked) == ALONE + 40 * 36
    assert all(SYSTEM in json.dumps(asked.body["messages"]) for asked in provider.asked)
    kept = Calibration.load((home / "bank.json").read_bytes(), "bank.json")
    found = kept.gates["m-1"]
    assert (found.passed, found.shown, found.date) == (True, Shown.PROBABILITIES, "2026-11-30")
    assert {length: len(probes) for length, probes in found.references.items()} == {"short": 6}
    assert (kept.bands, kept.versions, kept.status.value) == ({}, {}, "REFERENCE")
    assert "kept in bank.json, as the gate of m-1" in done.stderr


def test_what_was_kept_is_counted_by_the_next_probe(
    theodolite: Run, policed: Policed, shop: Shop, prompt: Path, recordings: Path
) -> None:
    said = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Send the invoice 17 to Berta."}]
    (recordings / "short.json").write_text(json.dumps({"model": "m-1", "messages": said}), encoding="utf-8")
    with FakeProvider(policed(model())) as provider:
        path = shop(provider.base_url)
        arguments = ("--system", prompt, "--into", "bank.json", "--references", "brief")
        gated = theodolite("probe", "--gate", "--model", "shop", *arguments)
        assert gated.exit_code == 0, gated.output
        path.write_text(f"calibration = 'bank.json'\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
        arguments = ("--system", prompt, "--probes", "1", "--format", "json")
        shown = theodolite("probe", recordings / "short.json", "--model", "shop", *arguments)
        again = theodolite("probe", recordings / "short.json", "--model", "shop", *arguments[:4], "--estimate")
    assert shown.exit_code == 0, shown.output
    assert "and 9 for the decision of a model that passed its gate." in " ".join(again.stdout.split())
    (session,) = json.loads(shown.stdout)["sessions"]
    facts = {fact["name"]: fact["value"] for signal in session["signals"] for fact in signal.get("facts", [])}
    assert (facts["gate"], facts["length"]) == ("passed", "brief")
    assert abs(facts["z"]) < 4.0


def test_a_model_that_does_not_read_it_cannot_be_measured_and_that_is_kept_too(
    theodolite: Run, policed: Policed, shop: Shop, home: Path
) -> None:
    with FakeProvider(policed(model(policy=0.1, liking=-1.5))) as provider:
        shop(provider.base_url)
        done = theodolite("probe", "--gate", "--model", "shop", "--into", "bank.json", "--format", "json")
        told = theodolite("probe", "--gate", "--model", "shop")
    assert (done.exit_code, told.exit_code) == (3, 3)
    assert len(provider.asked) == 2 * ALONE
    found = json.loads(done.stdout)
    assert (found["model"], found["passed"], "one_side" in found["reasons"]) == ("m-1", False, True)
    assert not Calibration.load((home / "bank.json").read_bytes(), "").gates["m-1"].passed
    words = " ".join(told.stdout.split())
    assert words.startswith("m-1 cannot be measured under this policy It ")
    assert "It leans the same way on what is forbidden and what is allowed" in words
    assert "without a system prompt" in words


def test_by_draws_it_says_the_smallest_shift_that_it_would_have_seen(
    theodolite: Run, policed: Policed, shop: Shop
) -> None:
    with FakeProvider(policed(model(contract="json", anew=True))) as provider:
        shop(provider.base_url)
        done = theodolite("probe", "--gate", "--model", "shop", "--references", "none")
    assert done.exit_code == 0, done.output
    told = " ".join(done.stdout.split())
    assert re.search(r"With 20 draws a question, no change of a rate below 0\.2\d would have been seen\.", told)
    assert "It shows no probabilities" in told
    assert f"{6 + PAIRS * 2 * 20:,} calls" in told


def test_the_benign_contexts_may_be_the_operator_s_own(
    theodolite: Run, policed: Policed, shop: Shop, home: Path
) -> None:
    form = '[[context]]\nid = "own-{0}"\nkind = "{2}"\ntopic = "own"\nsaid = [["user", "{0}{1}"]]'
    own = [form.format(number, " ha" * 2_700, ("plain", "hard")[number % 2]) for number in range(31)]
    (home / "own.toml").write_text("\n".join(own), encoding="utf-8")
    estimate = ("probe", "--gate", "--model", "shop", "--references", "brief,long", "--estimate")
    with FakeProvider(policed(model())) as provider:
        shop(provider.base_url, '[detectors.behavior]\nreferences = "own.toml"\n')
        done = theodolite(*estimate)
        assert done.exit_code == 0, done.output
        assert "behind 71 benign contexts" in " ".join(done.stdout.split())  # 40 that are shipped, and 31
        (home / "own.toml").write_text(own[0].replace("plain", "odd"), encoding="utf-8")
        bad = theodolite(*estimate)
    assert bad.exit_code == 2
    assert "context 'own-0': kind: 'odd' is none of plain, hard" in " ".join(bad.stderr.split())
    assert not provider.asked


def test_the_gate_alone_needs_no_benign_contexts(theodolite: Run, policed: Policed, shop: Shop) -> None:
    with FakeProvider(policed(model())) as provider:
        shop(provider.base_url)
        done = theodolite("probe", "--gate", "--model", "shop", "--references", "none", "--format", "json")
    assert done.exit_code == 0, done.output
    assert (json.loads(done.stdout)["references"], len(provider.asked)) == ({}, ALONE)


def test_an_estimate_asks_nobody_and_counts_what_would_be_asked(theodolite: Run, policed: Policed, shop: Shop) -> None:
    with FakeProvider(policed(model())) as provider:
        shop(provider.base_url)
        done = theodolite("probe", "--gate", "--model", "shop", "--references", "short,brief", "--estimate")
        assert not provider.asked
    assert done.exit_code == 0, done.output
    told = " ".join(done.stdout.split())
    behind = 2 * 40 * 36
    probabilities = (
        f"{ALONE + behind:,} calls where it shows probabilities ({behind:,} of them behind 80 benign contexts"
    )
    assert f"To measure shop with {PAIRS} pairs: {probabilities}" in told
    assert f"Where it shows none: {6 + PAIRS * 2 * 20:,} calls, about " in told
    assert told.endswith("by the price of [models.shop]. Nobody was asked.")


def artefact(path: Path, *models: str) -> None:
    """Write an artefact with the gates of some models."""

    def gate(name: str) -> Gate:
        return Gate(
            model=name,
            prompt_hash="",
            library="1.0.0",
            version="1",
            wording="proceed",
            shown=Shown.PROBABILITIES,
            date="2026-01-01",
            pairs=12,
            auc=1.0,
            violation=-3.0,
            twin=3.0,
            decline_share=1.0,
            conform_share=1.0,
            spread=0.1,
            passed=True,
        )

    made = Calibration(
        schema=1,
        id="bank-1",
        status=Status.CALIBRATED,
        alpha=0.01,
        date="2026-01-01",
        dataset=Dataset(name="ours"),
        versions={"fusion": "1"},
        bands={"fusion.call": Band(alert=0.9)},
        agents=("bank",),
        models=("m-0",),
        gates={name: gate(name) for name in models},
    )
    path.write_bytes(made.signed().document())


def test_an_artefact_keeps_all_that_it_has_but_the_gate_of_that_model(
    theodolite: Run, policed: Policed, shop: Shop, home: Path
) -> None:
    path, link = home / "bank.json", home / "link.json"
    artefact(path, "m-0", "m-1")
    path.chmod(0o640)
    link.symlink_to(path)
    with FakeProvider(policed(model())) as provider:
        shop(provider.base_url)
        arguments = ("--references", "none", "--date", "2026-11-30")
        done = theodolite("probe", "--gate", "--model", "shop", "--into", link, *arguments)
    assert done.exit_code == 0, done.output
    kept = Calibration.load(path.read_bytes(), "")
    assert {name: gate.date for name, gate in kept.gates.items()} == {"m-0": "2026-01-01", "m-1": "2026-11-30"}
    assert (kept.id, kept.alpha, kept.bands["fusion.call"].alert, kept.agents) == ("bank-1", 0.01, 0.9, ("bank",))
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert {entry.name for entry in home.iterdir()} == {"bank.json", "link.json", "theodolite.toml"}


@pytest.mark.parametrize("held", ["not json", '{"schema": 1}', "SQLite format 3\0"])
def test_a_file_that_is_no_artefact_is_not_written_over_and_nobody_is_asked(
    theodolite: Run, policed: Policed, shop: Shop, home: Path, held: str
) -> None:
    path = home / "mine.json"
    path.write_text(held, encoding="utf-8")
    with FakeProvider(policed(model())) as provider:
        shop(provider.base_url)
        done = theodolite("probe", "--gate", "--model", "shop", "--into", path)
        assert not provider.asked
    assert (done.exit_code, path.read_text(encoding="utf-8")) == (2, held)
    assert "mine.json is not a calibration artefact" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("session.json",), "a recording has no meaning with --gate"),
        (("--localize",), "--localize has no meaning with --gate"),
        (("--store", "kept.db"), "--store has no meaning with --gate"),
        (("--probes", "3"), "--probes has no meaning with --gate"),
        (("--references", "long"), "at least 30 are needed"),
        (("--references", "tiny"), "some of brief, short, medium, long"),
        (("--date", "yesterday"), "--date is a day as 2026-11-30"),
        (("--format", "html"), "text or json"),
        (("--into", "nowhere/bank.json"), "there is no such folder"),
    ],
)
def test_what_makes_no_sense_is_refused(theodolite: Run, shop: Shop, arguments: tuple[str, ...], said: str) -> None:
    shop("http://127.0.0.1:9/v1")
    done = theodolite("probe", "--gate", "--model", "shop", *arguments)
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.stderr.split())


def test_without_gate_its_options_and_no_recording_are_refused(theodolite: Run, shop: Shop) -> None:
    shop("http://127.0.0.1:9/v1")
    for arguments, said in (((), "no recording is named"), (("x.json", "--into", "y.json"), "--into has no meaning")):
        done = theodolite("probe", "--model", "shop", *arguments)
        assert (done.exit_code, said in done.stderr) == (2, True), done.output
    assert "no model is named to measure" in theodolite("probe", "--gate").stderr


def test_a_provider_that_fails_decides_nothing_and_says_why(
    theodolite: Run, shop: Shop, home: Path, policed: Policed
) -> None:
    good = policed(model())

    def script(asked: Asked) -> Says | Breaks:
        return Breaks(Phase.BODY) if len(provider.asked) > 100 else good(asked)

    with FakeProvider(script) as provider:
        shop(provider.base_url)
        done = theodolite("probe", "--gate", "--model", "shop", "--into", "bank.json")
    assert done.exit_code == 3, done.output
    told = " ".join(done.stdout.split())
    assert told.startswith("Not decided: whether the model can be measured the gate is not decided: ")
    assert "nothing was kept" in told
    assert not (home / "bank.json").exists()


def test_a_budget_holds_for_a_gate_too(theodolite: Run, shop: Shop, policed: Policed) -> None:
    with FakeProvider(policed(model())) as provider:
        shop(provider.base_url, "[budget.fleet]\ncalls = 50\n")
        done = theodolite("probe", "--gate", "--model", "shop")
    assert done.exit_code == 3
    assert len(provider.asked) <= 50
    assert "the budget of the fleet allows no more: 50 of 50 calls are used" in " ".join(done.stdout.split())


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs the signals of POSIX")
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_at_once_and_says_that_nothing_is_decided(
    shop: Shop, home: Path, policed: Policed, stop: signal.Signals
) -> None:
    good = policed(model())

    def script(asked: Asked) -> Says | Breaks:
        return Breaks(Phase.HEADERS, "hang") if len(provider.asked) > 20 else good(asked)

    with FakeProvider(script) as provider:
        shop(provider.base_url, "[panel]\ntimeout = 300.0\n")
        command = [sys.executable, "-m", "theodolite.cli", "probe", "--gate", "--model", "shop", "--into", "bank.json"]
        running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
        deadline = time.monotonic() + 60
        while len(provider.asked) <= 20 and time.monotonic() < deadline:
            assert running.poll() is None, running.communicate()
            time.sleep(0.02)
        os.killpg(running.pid, stop)
        begun = time.monotonic()
        _, said = running.communicate(timeout=20)
        assert time.monotonic() - begun < 5.0
    assert running.returncode == 128 + stop, said
    assert "stopped: whether the model can be measured is not decided. Asked of it: " in said
    assert "Traceback" not in said
    assert not (home / "bank.json").exists()


def test_the_json_form_is_a_gate(theodolite: Run, policed: Policed, shop: Shop, home: Path) -> None:
    with FakeProvider(policed(model())) as provider:
        shop(provider.base_url)
        arguments = ("--references", "none", "--format", "json", "--output", "gate.json")
        done = theodolite("probe", "--gate", "--model", "shop", *arguments)
    assert (done.exit_code, done.stdout) == (0, "")
    given = json.loads((home / "gate.json").read_text(encoding="utf-8"))
    assert set(given) == set(Gate.__struct_fields__)
