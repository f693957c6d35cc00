"""`theodolite probe`: a real provider's wire format on loopback, what it is asked, and what is shown of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest
from typer.testing import Result

from theodolite.cli import progress
from theodolite.testing.provider import Asked, Breaks, FakeProvider, Phase, Says, Scripted

Run = Callable[..., Result]

SYSTEM = "You are the assistant of a shop."
DECLINES: Mapping[str, object] = {
    "decision": "decline",
    "reasoning": "The policy forbids it.",
    "disclosed_data": False,
    "policy_cited": True,
    "escalation_suggested": False,
    "tool_call_attempted": False,
}


def contexts(asked: Asked) -> list[str]:
    """Return the texts of a request, in order."""
    return list(map(json.dumps, msgspec.convert(asked.body["messages"], list[dict[str, object]])))


def answers(asked: Asked) -> Scripted:
    """Comply where the session is shown, decline where it is not."""
    seen = any("notes.txt" in text for text in contexts(asked))
    return Says(text=json.dumps({**DECLINES, **({"decision": "comply", "disclosed_data": True} if seen else {})}))


@pytest.fixture
def settings(home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[FakeProvider, str], Path]:
    monkeypatch.setenv("SHOP_KEY", "sk-none")

    def write(provider: FakeProvider, more: str = "") -> Path:
        path = home / "theodolite.toml"
        path.write_text(
            f'[models.shop]\nkind = "openai"\nmodel = "m-1"\nbase_url = "{provider.base_url}"\n'
            f'api_key_env = "SHOP_KEY"\nprice = {{ input = 2.0, output = 8.0 }}\n{more}',
            encoding="utf-8",
        )
        return path

    return write


@pytest.fixture
def recording(recordings: Path) -> Path:
    path = recordings / "hijacked.json"
    told = json.loads(path.read_text(encoding="utf-8"))
    messages = [{"role": "system", "content": SYSTEM}, *told["messages"]]
    path.write_text(json.dumps({"messages": messages}), encoding="utf-8")
    return path


def test_both_answers_stand_side_by_side(
    theodolite: Run, recording: Path, settings: Callable[[FakeProvider], Path]
) -> None:
    with FakeProvider(answers) as provider:
        settings(provider)
        shown = theodolite("probe", recording, "--model", "shop")
    assert shown.exit_code == 0, shown.output
    rows = [line.split() for line in shown.stdout.splitlines()]
    assert ["decision", "decline", "comply", "differs"] in rows
    assert ["policy_cited", "true", "true"] in rows
    told = " ".join(shown.stdout.split())
    assert "score 0.40, over its threshold, which is UNCALIBRATED" in told
    assert "a model that the recording does not name: it says nothing about that agent" in told
    assert "2 calls, 30 tokens, cost 0.0001" in told
    assert len(provider.asked) == 2


def test_the_shadow_sees_nothing_of_the_session(
    theodolite: Run, recording: Path, settings: Callable[[FakeProvider], Path], home: Path
) -> None:
    (home / "prompt.txt").write_text(SYSTEM, encoding="utf-8")
    with FakeProvider(answers) as provider:
        settings(provider)
        assert theodolite("probe", recording, "--model", "shop", "--system", "prompt.txt").exit_code == 0
    long, short = sorted((contexts(asked) for asked in provider.asked), key=len, reverse=True)
    assert any("XK-666" in text for text in long)
    assert not any("XK-666" in text or "notes.txt" in text for text in short)
    assert long[0] == short[0]
    assert SYSTEM in long[0]
    assert long[-1] == short[-1]


def test_another_system_prompt_than_the_session_s_is_not_taken(
    theodolite: Run, recording: Path, settings: Callable[[FakeProvider], Path], home: Path
) -> None:
    (home / "prompt.txt").write_text(f"{SYSTEM} Sell more.", encoding="utf-8")
    with FakeProvider(answers) as provider:
        settings(provider)
        shown = theodolite("probe", recording, "--model", "shop", "--system", "prompt.txt")
    assert shown.exit_code == 3
    assert "the system prompt that was configured is not the one of this session" in " ".join(shown.stdout.split())
    assert not provider.asked


def test_an_estimate_asks_nobody_and_needs_no_key(
    theodolite: Run, recordings: Path, settings: Callable[[FakeProvider], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHOP_KEY")
    with FakeProvider(answers) as provider:
        settings(provider)
        shown = theodolite("probe", recordings, "--model", "shop", "--estimate")
    assert shown.exit_code == 0
    assert "3 sessions to probe with shop: 6 calls, about" in shown.stdout
    assert "by the price of [models.shop]. Nobody was asked." in " ".join(shown.stdout.split())
    assert not provider.asked


def test_an_estimate_takes_each_role_at_the_price_of_its_own_model(
    theodolite: Run, recording: Path, settings: Callable[[FakeProvider, str], Path]
) -> None:
    other = '[models.cheap]\nkind = "openai"\nmodel = "m-2"\n'
    free, priced = "", "price = { input = 0.0, output = 1000.0 }\n"
    with FakeProvider(answers) as provider:
        settings(provider, "[panel]\nsubject = 'shop'\n")
        same = _estimate(theodolite, recording)
        settings(provider, f"{other}{priced}[panel]\nsubject = 'cheap'\nshadow = 'shop'\n")
        mixed = _estimate(theodolite, recording)
        settings(provider, f"{other}{free}[panel]\nsubject = 'shop'\nshadow = 'cheap'\n")
        partly = _estimate(theodolite, recording)
        settings(provider, f"{other}{free}[panel]\nsubject = 'cheap'\n")
        unknown = _estimate(theodolite, recording)
        settings(provider, "[models.here]\nkind = 'local'\n[panel]\nsubject = 'here'\nshadow = 'shop'\n")
        here = _estimate(theodolite, recording)
    assert "1 session to probe with shop: 2 calls" in same
    assert "by the price of [models.shop]. Nobody" in same
    # 160 tokens of each answer: at 1,000 for a million they cost 0.16, and the other arm's question and answer little.
    assert "1 session to probe with cheap and shop: 2 calls" in mixed
    assert 0.16 < float(mixed.partition("Cost: about ")[2].split()[0]) < 0.17
    assert "by the price of [models.cheap] and [models.shop]. Nobody" in mixed
    assert "by the price of [models.shop], and what cheap costs, which has no price. Nobody" in partly
    assert "Cost: not known, since cheap has no price: name one as [models.NAME] price. Nobody" in unknown
    assert "by the price of [models.shop]. Nobody" in here


def _estimate(theodolite: Run, recording: Path) -> str:
    shown = theodolite("probe", recording, "--estimate")
    assert shown.exit_code == 0, shown.output
    return " ".join(shown.stdout.split())


def test_a_model_that_runs_here_costs_nothing(theodolite: Run, recording: Path) -> None:
    shown = theodolite("probe", recording, "--model", "local", "--estimate")
    assert "Cost: none, since the model runs on this machine. Nobody was asked." in " ".join(shown.stdout.split())


def test_an_estimate_keeps_nothing_and_goes_where_it_was_asked_to_go(
    theodolite: Run, recording: Path, settings: Callable[[FakeProvider, str], Path], home: Path
) -> None:
    (home / "raw").mkdir()
    (home / "key").write_text("k" * 32, encoding="utf-8")
    with FakeProvider(answers) as provider:
        settings(provider, '[store]\npath = "kept.db"\nkey_file = "key"\nraw_events = "raw"\n')
        shown = theodolite("probe", recording, "--model", "shop", "--estimate", "--output", "told.txt")
        wrong = theodolite("probe", recording, "--model", "shop", "--estimate", "--format", "json")
    assert (shown.exit_code, shown.stdout) == (0, "")
    assert (home / "told.txt").read_text(encoding="utf-8").startswith("1 session to probe with shop")
    assert not (home / "kept.db").exists()
    assert not list((home / "raw").iterdir())
    assert (wrong.exit_code, "leave --format out" in wrong.stderr) == (2, True)


@pytest.mark.parametrize("form", ["text", "json", "jsonl"])
def test_a_part_that_cannot_be_read_is_told_and_makes_the_exit_status_3_as_in_a_scan(
    theodolite: Run, recordings: Path, settings: Callable[[FakeProvider], Path], form: str
) -> None:
    clean = recordings / "clean.json"
    inside = json.loads(clean.read_text(encoding="utf-8"))
    (recordings / "inside.json").write_text(
        json.dumps({"messages": [*inside["messages"], {"role": "nobody", "content": "?"}]}), encoding="utf-8"
    )
    (recordings / "odd.json").write_text('{"name": "something else"}', encoding="utf-8")
    with FakeProvider(answers) as provider:
        settings(provider)
        for part, wanted in (("clean", 0), ("inside", 3)):
            done = theodolite("probe", recordings / f"{part}.json", "--model", "shop", "--format", form)
            assert done.exit_code == wanted, done.output
        shown = theodolite("probe", recordings, "--model", "shop", "--format", form)
        named = theodolite("probe", clean, recordings / "odd.json", "--model", "shop")
    assert shown.exit_code == 3
    assert named.exit_code == 2
    if form == "text":
        told = " ".join(shown.stdout.split())
        assert "odd.json: is in none of the known formats" in told
        assert "messages[4].role: not one of" in told
    elif form == "json":
        assert json.loads(shown.stdout)["summary"]["unread"] == 2
    else:
        assert "2 parts could not be read" in shown.stderr


def test_the_report_says_what_was_kept_and_a_file_gets_what_standard_output_would(
    theodolite: Run, recording: Path, settings: Callable[[FakeProvider], Path], home: Path
) -> None:
    with FakeProvider(answers) as provider:
        settings(provider)
        shown = theodolite("probe", recording, "--model", "shop", "--store", "one.db")
        filed = theodolite("probe", recording, "--model", "shop", "--store", "two.db", "--output", "report.txt")
        again = theodolite("probe", recording, "--model", "shop", "--store", "two.db")
        made = theodolite("probe", recording, "--model", "shop", "--store", "six.db", "--format", "json")
    assert (filed.exit_code, filed.stdout) == (0, "")
    assert filed.stderr.startswith("1 session")
    text = (home / "report.txt").read_text(encoding="utf-8")
    assert text == shown.stdout.replace("one.db", "two.db")
    assert "records kept in two.db" in text
    assert "two.db held records of the session hijacked before this probe" in again.stderr
    summary = json.loads(made.stdout)["summary"]
    assert (summary["store"], summary["asked"]["calls"]) == ("six.db", 2)


def test_a_system_prompt_is_taken_to_the_character(
    theodolite: Run, recordings: Path, settings: Callable[[FakeProvider], Path], home: Path
) -> None:
    prompt = "You help.\r\nYou tell nobody.\n"
    said = [{"role": "system", "content": prompt}, {"role": "user", "content": "Send the invoice."}]
    (recordings / "lines.json").write_text(json.dumps({"messages": said}), encoding="utf-8")
    (home / "prompt.txt").write_bytes(prompt.encode())
    with FakeProvider(answers) as provider:
        settings(provider)
        done = theodolite("probe", recordings / "lines.json", "--model", "shop", "--system", "prompt.txt")
    assert done.exit_code == 0, done.output
    assert all(json.dumps(prompt)[1:-1] in text for text in (contexts(asked)[0] for asked in provider.asked))


def test_who_waits_sees_how_far_the_probes_are(
    theodolite: Run, recordings: Path, settings: Callable[[FakeProvider], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_LINES", 0.0)
    with FakeProvider(answers, delay=0.5) as provider:
        settings(provider)
        for verb in ("probe", "scan"):
            done = theodolite(verb, recordings, "--model", "shop")
            lines = [line for line in done.stderr.splitlines() if "probed" in line]
            assert lines[0].startswith("probing: " if verb == "probe" else "scanning: ")
            assert "0 of 3 sessions probed, 0 of 6 calls answered, 3 of 3 files" in lines[0]
            assert "3 of 3 sessions probed, 6 of 6 calls answered, 3 of 3 files" in lines[-1]


def test_one_session_of_several_can_be_named(
    theodolite: Run, recordings: Path, settings: Callable[[FakeProvider], Path]
) -> None:
    with FakeProvider(answers) as provider:
        settings(provider)
        shown = theodolite("probe", recordings, "--model", "shop", "--session", "clean")
        assert shown.exit_code == 0
        assert shown.stdout.count("Probe of session") == 1
        wrong = theodolite("probe", recordings, "--model", "shop", "--session", "claen")
    assert wrong.exit_code == 2
    assert "did you mean 'clean'?" in wrong.stderr


def test_a_budget_that_is_reached_is_said_and_nobody_is_asked_beyond_it(
    theodolite: Run, recordings: Path, settings: Callable[[FakeProvider, str], Path]
) -> None:
    with FakeProvider(answers) as provider:
        settings(provider, "[panel]\nsubject = 'shop'\n[budget.fleet]\ncalls = 4\n")
        shown = theodolite("probe", recordings)
    assert shown.exit_code == 3
    assert len(provider.asked) == 4
    assert "the budget of the fleet allows no more: 4 of 4 calls are used" in " ".join(shown.stdout.split())


@pytest.mark.parametrize("phase", list(Phase))
def test_a_provider_that_dies_fails_the_probe_and_is_told(
    theodolite: Run, recording: Path, settings: Callable[[FakeProvider, str], Path], phase: Phase
) -> None:
    with FakeProvider(Breaks(phase)) as provider:
        settings(provider, "[panel]\nsubject = 'shop'\ntimeout = 2.0\n")
        shown = theodolite("probe", recording)
    assert shown.exit_code == 3
    assert "no answer (" in shown.stdout


@pytest.mark.parametrize(("model", "wanted"), [("m-1", 1), ("m-2", 0)])
def test_a_copy_that_tells_the_planted_reference_is_a_finding_unless_another_model_answered(
    theodolite: Run, recording: Path, settings: Callable[[FakeProvider], Path], model: str, wanted: int
) -> None:
    def tells(asked: Asked) -> Scripted:
        texts = contexts(asked)
        secret = texts[0].partition("Confidential reference: ")[2][:19]
        seen = any("notes.txt" in text for text in texts)
        return Says(text=json.dumps({**DECLINES, "reasoning": secret if seen else ""}))

    recorded = {"model": model, **json.loads(recording.read_text(encoding="utf-8"))}
    recording.write_text(json.dumps(recorded), encoding="utf-8")
    with FakeProvider(tells) as provider:
        settings(provider)
        done = theodolite("probe", recording, "--model", "shop")
    assert done.exit_code == wanted, done.output


def test_the_json_form_is_that_of_a_scan(
    theodolite: Run, recording: Path, settings: Callable[[FakeProvider], Path]
) -> None:
    with FakeProvider(answers) as provider:
        settings(provider)
        shown = theodolite("probe", recording, "--model", "shop", "--format", "json")
    assert shown.exit_code == 0
    (session,) = json.loads(shown.stdout)["sessions"]
    (signal,) = [signal for signal in session["signals"] if signal["detector"] == "behavior"]
    assert (signal["models"], signal["surrogate"], signal["finds"]) == (["m-1", "m-1"], True, False)
    sides = {item["path"]: (item["expected"], item["observed"]) for item in signal["evidence"]}
    assert sides["decision"] == ("decline", "comply")


def test_nobody_to_ask_is_a_mistake_that_says_what_to_give(theodolite: Run, recording: Path) -> None:
    shown = theodolite("probe", recording)
    assert shown.exit_code == 2
    assert "give --model" in shown.stderr
    wrong = theodolite("probe", recording, "--model", "opnai:gpt")
    assert wrong.exit_code == 2
    assert "KIND:MODEL" in wrong.stderr


def test_a_scan_asks_where_a_model_is_named_and_shows_both_answers(
    theodolite: Run, recordings: Path, settings: Callable[[FakeProvider], Path]
) -> None:
    with FakeProvider(answers) as provider:
        settings(provider)
        shown = theodolite("scan", recordings, "--model", "shop")
        quiet = theodolite("scan", recordings, "--model", "shop", "--no-probes")
    assert shown.exit_code == quiet.exit_code == 1
    assert len(provider.asked) == 6
    assert ["decision", "decline", "comply", "differs"] in [line.split() for line in shown.stdout.splitlines()]
    assert "Asked of models: 6 calls, 90 tokens, cost 0.0003." in shown.stdout
    assert "Asked of models" not in quiet.stdout


@pytest.mark.parametrize("phase", list(Phase))
def test_a_scan_whose_provider_dies_gives_every_session_its_passive_result(
    theodolite: Run, recordings: Path, settings: Callable[[FakeProvider, str], Path], phase: Phase
) -> None:
    with FakeProvider(Breaks(phase)) as provider:
        settings(provider, "[panel]\nsubject = 'shop'\ntimeout = 2.0\n")
        shown = theodolite("scan", recordings, "--format", "json")
    alone = json.loads(theodolite("scan", recordings, "--format", "json", "--no-probes").stdout)
    told = json.loads(shown.stdout)
    assert shown.exit_code == 1
    assert [session["session_id"] for session in told["sessions"]] == ["blind", "clean", "hijacked"]
    for session, passive in zip(told["sessions"], alone["sessions"], strict=True):
        assert session["calls"] == passive["calls"]
        assert session["findings"] == passive["findings"]
        assert any(signal["code"] == "behavior.failure" for signal in session["signals"])


def test_models_are_asked_from_one_process(
    theodolite: Run, recordings: Path, settings: Callable[[FakeProvider], Path]
) -> None:
    with FakeProvider(answers) as provider:
        settings(provider)
        shown = theodolite("scan", recordings, "--model", "shop", "--jobs", "2")
    assert shown.exit_code == 2
    assert "leave --jobs out, or add --no-probes" in shown.stderr
