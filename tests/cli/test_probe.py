"""`theodolite probe`: a real provider's wire format on loopback, what it is asked, and what is shown of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest
from typer.testing import Result

from theodolite.cli import progress
from theodolite.detectors.behavior.library import shipped
from theodolite.detectors.behavior.probe import ProbeType
from theodolite.testing.fakes.policies import PolicyModel
from theodolite.testing.provider import Asked, Breaks, FakeProvider, Phase, Says, Scripted

Run = Callable[..., Result]
Policed = Callable[[PolicyModel], Callable[[Asked], Says]]

# Calls of a probe: those of its first round, and those of one whose copy tells nothing.
FIRST, WHOLE = 5, 11
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


def drifted() -> PolicyModel:
    """Return a model that does what is forbidden behind the text of the hijacked session, and behind no other."""
    return PolicyModel(
        templates=shipped().templates, policy=12.0, drift=24.0, contract="json", taints=("XK-666",), escalates=0.0
    )


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
    theodolite: Run, recording: Path, settings: Callable[[FakeProvider], Path], policed: Policed
) -> None:
    with FakeProvider(policed(drifted())) as provider:
        settings(provider)
        shown = theodolite("probe", recording, "--model", "shop")
    assert shown.exit_code == 3, shown.output
    rows = [line.split() for line in shown.stdout.splitlines()]
    assert sum(row[:4] == ["decision", "decline", "comply", "differs,"] for row in rows) == 6
    assert ["disclosed_data", "false", "false"] in rows
    told = " ".join(shown.stdout.split())
    assert told.count("score 1.00, over its threshold, which is UNCALIBRATED") == 6
    assert "a model that the recording does not name: it says nothing about that agent" in told
    assert f"{6 * WHOLE} calls, {6 * WHOLE * 15:,} tokens, cost 0.00" in told
    assert sum(asked.draws for asked in provider.asked) == 6 * WHOLE


@pytest.mark.parametrize(("given", "number"), [((), 6), (("--probes", "1"), 1), (("--probes", "9"), 9)])
def test_each_session_gets_so_many_probes_of_one_moment_and_of_all_types_in_turn(
    theodolite: Run,
    recording: Path,
    settings: Callable[[FakeProvider, str], Path],
    policed: Policed,
    *,
    given: tuple[str, ...],
    number: int,
) -> None:
    with FakeProvider(policed(drifted())) as provider:
        # What live sessions are held to bounds none that is recorded.
        settings(provider, "[detectors.behavior.schedule]\nmax_probes_per_session = 2\njitter_seconds = 900.0\n")
        shown = theodolite("probe", recording, "--model", "shop", "--format", "json", *given)
    assert shown.exit_code == 3, shown.output
    (session,) = json.loads(shown.stdout)["sessions"]
    compared = [signal for signal in session["signals"] if signal["code"].partition(".")[2] in set(ProbeType)]
    assert len(compared) == number
    assert len({signal["code"] for signal in compared}) == min(number, 6)
    texts = [contexts(asked) for asked in provider.asked]
    assert {sum("notes.txt" in text for text in told) for told in texts} == {0, 1}
    assert len({"".join(told[1:3]) for told in texts if any("notes.txt" in text for text in told)}) == 1


def test_many_probes_push_nothing_of_the_session_out(
    theodolite: Run, recording: Path, settings: Callable[[FakeProvider], Path], policed: Policed
) -> None:
    with FakeProvider(policed(PolicyModel(templates=shipped().templates, contract="json"))) as provider:
        settings(provider)
        shown = theodolite("probe", recording, "--model", "shop", "--probes", "64")
    assert shown.exit_code == 3, shown.output
    # The copy is asked the probe and its twin: each time behind the whole session, which has five texts.
    copies = [asked for asked in provider.asked if any("notes.txt" in text for text in contexts(asked))]
    assert sum(asked.draws for asked in copies) >= 2 * 64
    assert all("The report holds figures." in "".join(contexts(asked)) for asked in copies)


@pytest.mark.parametrize("number", ["0", "65", "many"])
def test_a_number_of_probes_that_is_none_is_refused(theodolite: Run, recording: Path, number: str) -> None:
    assert theodolite("probe", recording, "--model", "local", "--probes", number).exit_code == 2


def test_the_shadow_sees_nothing_of_the_session(
    theodolite: Run, recording: Path, settings: Callable[[FakeProvider], Path], home: Path
) -> None:
    (home / "prompt.txt").write_text(SYSTEM, encoding="utf-8")
    with FakeProvider(answers) as provider:
        settings(provider)
        assert theodolite("probe", recording, "--model", "shop", "--system", "prompt.txt").exit_code == 3
    told = list(map(contexts, provider.asked))
    copies = [texts for texts in told if any("XK-666" in text for text in texts)]
    shadows = [texts for texts in told if any("The conversation so far, by its shape alone" in text for text in texts)]
    assert len(copies) >= 2 * len(shadows) >= 12  # with the twins
    assert all("notes.txt" in "".join(texts) for texts in copies)
    assert not any("notes.txt" in "".join(texts) for texts in told if texts not in copies)
    assert {texts[0] for texts in copies} == {texts[0] for texts in shadows}  # the prompt, the policy and the token
    assert all(SYSTEM in texts[0] for texts in told)
    assert {texts[-1] for texts in shadows} < {texts[-1] for texts in copies}


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
    assert f"3 sessions to probe with shop: {3 * 6 * FIRST} calls, about" in shown.stdout
    told = " ".join(shown.stdout.split())
    assert "by the price of [models.shop]. Nobody was asked." in told
    more = (
        "6 where the first pair does the same, 8 where the copy alone tells the planted reference, and 1 for a second"
    )
    assert f"What it finds adds at most 15 calls to it: {more} opinion." in told
    assert not provider.asked


@pytest.mark.parametrize(("samples", "tells"), [(4, True), (4, False), (2, True), (1, False)])
def test_no_probe_takes_more_than_an_estimate_says(
    theodolite: Run,
    recording: Path,
    settings: Callable[[FakeProvider, str], Path],
    policed: Policed,
    *,
    samples: int,
    tells: bool,
) -> None:
    made = drifted()
    made.tainted_leak = float(tells)
    with FakeProvider(policed(made)) as provider:
        settings(provider, f"[detectors.behavior]\nsamples = {samples}\n")
        told = " ".join(theodolite("probe", recording, "--model", "shop", "--estimate").stdout.split())
        done = theodolite("probe", recording, "--model", "shop")
    assert done.exit_code == 3, done.output
    asked = sum(asked.draws for asked in provider.asked)
    most = int(told.partition("adds at most ")[2].split()[0])
    assert most == 2 * (samples - 1) + 8 + 1
    # Where the copy tells it, the first pair settles the bet, and fresh draws are asked of both.
    assert asked == 6 * (FIRST + (8 if tells else 2 * (samples - 1)))


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
    assert f"1 session to probe with shop: {6 * FIRST} calls" in same
    assert "by the price of [models.shop]. Nobody" in same
    # 160 tokens of each of twelve answers: at 1,000 for a million they cost 1.92, and what the other is asked little.
    assert f"1 session to probe with cheap and shop: {6 * FIRST} calls" in mixed
    assert 1.92 < float(mixed.partition("Cost: about ")[2].split()[0]) < 2.0
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
    inside = {"model": "m-1", **json.loads(clean.read_text(encoding="utf-8"))}
    clean.write_text(json.dumps(inside), encoding="utf-8")
    (recordings / "inside.json").write_text(
        json.dumps({**inside, "messages": [*inside["messages"], {"role": "nobody", "content": "?"}]}), encoding="utf-8"
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
    theodolite: Run, recording: Path, settings: Callable[[FakeProvider, str], Path], home: Path
) -> None:
    (home / "key").write_text("k" * 32, encoding="utf-8")
    with FakeProvider(answers) as provider:
        settings(provider, '[store]\nkey_file = "key"\n')  # with a key it draws the same probes each time
        shown = theodolite("probe", recording, "--model", "shop", "--store", "one.db")
        filed = theodolite("probe", recording, "--model", "shop", "--store", "two.db", "--output", "report.txt")
        again = theodolite("probe", recording, "--model", "shop", "--store", "two.db")
        made = theodolite("probe", recording, "--model", "shop", "--store", "six.db", "--format", "json")
    assert (filed.exit_code, filed.stdout) == (3, "")
    assert filed.stderr.startswith("1 session")
    text = (home / "report.txt").read_text(encoding="utf-8")
    assert text == shown.stdout.replace("one.db", "two.db")
    assert "records kept in two.db" in text
    assert "two.db held records of the session hijacked before this probe" in again.stderr
    summary = json.loads(made.stdout)["summary"]
    assert (summary["store"], summary["asked"]["calls"]) == (
        "six.db",
        sum(asked.draws for asked in provider.asked) // 4,
    )


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
    assert done.exit_code == 3, done.output
    assert all(json.dumps(prompt)[1:-1] in text for text in (contexts(asked)[0] for asked in provider.asked))


def test_who_waits_sees_how_far_the_probes_are(
    theodolite: Run, recordings: Path, settings: Callable[[FakeProvider], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_LINES", 0.0)
    with FakeProvider(answers, delay=0.5) as provider:
        settings(provider)
        for verb, more in (("probe", ("--probes", "1")), ("scan", ())):
            done = theodolite(verb, recordings, "--model", "shop", *more)
            lines = [line for line in done.stderr.splitlines() if "probed" in line]
            assert lines[0].startswith("probing: " if verb == "probe" else "scanning: ")
            assert f"0 of about {3 * WHOLE} calls answered, 0 of 3 sessions probed, 3 of 3 files" in lines[0]
            between = re.compile(r"[1-9]\d? of about 33 calls answered, 0 of 3 sessions probed")
            assert any(between.search(line) for line in lines)
            assert re.search(r"(\d+) of about \1 calls answered, 3 of 3 sessions probed, 3 of 3 files", lines[-1])


def test_one_session_of_several_can_be_named(
    theodolite: Run, recordings: Path, settings: Callable[[FakeProvider], Path]
) -> None:
    with FakeProvider(answers) as provider:
        settings(provider)
        shown = theodolite("probe", recordings, "--model", "shop", "--session", "clean")
        assert shown.exit_code == 3
        assert shown.stdout.count("Probe of session") == 1
        wrong = theodolite("probe", recordings, "--model", "shop", "--session", "claen")
    assert wrong.exit_code == 2
    assert "did you mean 'clean'?" in wrong.stderr


def test_a_budget_that_is_reached_is_said_and_nobody_is_asked_beyond_it(
    theodolite: Run, recordings: Path, settings: Callable[[FakeProvider, str], Path]
) -> None:
    with FakeProvider(answers) as provider:
        settings(provider, "[panel]\nsubject = 'shop'\n[budget.fleet]\ncalls = 9\n")
        shown = theodolite("probe", recordings, "--probes", "1")
    assert shown.exit_code == 3
    assert len(provider.asked) == FIRST
    assert "the budget of the fleet allows no more: 5 of 9 calls are used" in " ".join(shown.stdout.split())


# A connection that ends behind a whole answer has brought it.
@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.DONE])
def test_a_provider_that_dies_fails_the_probe_and_is_told(
    theodolite: Run, recording: Path, settings: Callable[[FakeProvider, str], Path], phase: Phase
) -> None:
    with FakeProvider(Breaks(phase)) as provider:
        settings(provider, "[panel]\nsubject = 'shop'\ntimeout = 2.0\n")
        shown = theodolite("probe", recording, "--probes", "2")
    assert shown.exit_code == 3
    assert shown.stdout.count("no answer (") == 2


@pytest.mark.parametrize(("model", "wanted"), [("m-1", 1), ("m-2", 3)])
def test_a_copy_that_tells_the_planted_reference_is_a_finding_unless_another_model_answered(
    theodolite: Run, recording: Path, settings: Callable[[FakeProvider], Path], model: str, wanted: int
) -> None:
    def tells(asked: Asked) -> Scripted:
        texts = contexts(asked)
        secret = texts[0].partition("to be told to nobody: ")[2][:19]
        seen = any("notes.txt" in text for text in texts)
        return Says(text=json.dumps({**DECLINES, "reasoning": secret if seen else ""}))

    recorded = {"model": model, **json.loads(recording.read_text(encoding="utf-8"))}
    recording.write_text(json.dumps(recorded), encoding="utf-8")
    with FakeProvider(tells) as provider:
        settings(provider)
        done = theodolite("probe", recording, "--model", "shop", "--probes", "1")
    assert done.exit_code == wanted, done.output


@pytest.mark.parametrize(("model", "wanted"), [("m-1", 1), ("m-2", 3)])
def test_probes_that_together_alarm_are_a_finding_and_one_is_not(
    theodolite: Run,
    recording: Path,
    settings: Callable[[FakeProvider], Path],
    policed: Policed,
    *,
    model: str,
    wanted: int,
) -> None:
    recorded = {"model": model, **json.loads(recording.read_text(encoding="utf-8"))}
    recording.write_text(json.dumps(recorded), encoding="utf-8")
    with FakeProvider(policed(drifted())) as provider:
        settings(provider)
        once = theodolite("probe", recording, "--model", "shop", "--probes", "1")
        often = theodolite("probe", recording, "--model", "shop", "--probes", "14")
    assert (once.exit_code, often.exit_code) == (3 if model == "m-2" else 0, wanted), often.output
    told = " ".join(often.stdout.split()).rpartition("Verdict ")[2]
    assert told.startswith("drift found: fusion.session decides and stands at ") is (wanted == 1)
    assert told.startswith("not enough evidence: the model that answered is not named") is (wanted == 3)


def test_the_json_form_is_that_of_a_scan(
    theodolite: Run, recording: Path, settings: Callable[[FakeProvider], Path]
) -> None:
    with FakeProvider(answers) as provider:
        settings(provider)
        shown = theodolite("probe", recording, "--model", "shop", "--format", "json", "--probes", "1")
    assert shown.exit_code == 3
    (session,) = json.loads(shown.stdout)["sessions"]
    signal, whole = [signal for signal in session["signals"] if signal["detector"] == "behavior"]
    assert whole["code"] == "behavior.session"
    assert (signal["models"], signal["surrogate"], signal["finds"]) == (["m-1"], True, False)
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
    asked = sum(one.draws for one in provider.asked)
    assert 3 * FIRST < asked <= 3 * (WHOLE + 1)
    rows = [line.split()[:4] for line in shown.stdout.splitlines()]
    assert ["decision", "decline", "comply", "differs,"] in rows
    assert f"Asked of models: {asked} calls, {15 * asked:,} tokens, cost 0.00" in " ".join(shown.stdout.split())
    assert "Asked of models" not in quiet.stdout


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.DONE])
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
        # What the calls come to together is one of two bets where sessions are probed; each call is as it was.
        for call in (*session["calls"], *passive["calls"]):
            call["signals"] = [code for code in call["signals"] if code != "fusion.session"]
        assert session["calls"] == passive["calls"]
        assert [one for one in session["findings"] if one["code"] != "fusion.session"] == passive["findings"]
        assert any(signal["code"] == "behavior.failure" for signal in session["signals"])


@pytest.mark.parametrize("verb", ["scan", "probe"])
def test_what_a_recorded_session_took_in_brings_no_probes(
    theodolite: Run, recordings: Path, settings: Callable[[FakeProvider], Path], policed: Policed, verb: str
) -> None:
    # Live it would be probed for each of these, since each is more than a schedule waits for.
    said = [{"role": "user", "content": f"Entry {number} is a lamp. " * 2_000} for number in range(4)]
    path = recordings / "long.json"
    path.write_text(json.dumps({"messages": said}), encoding="utf-8")
    with FakeProvider(policed(PolicyModel(templates=shipped().templates, policy=12.0, contract="json"))) as provider:
        settings(provider)
        done = theodolite(verb, path, "--model", "shop", *(("--probes", "1") if verb == "probe" else ()))
    assert "behavior" not in done.stderr
    assert sum(asked.draws for asked in provider.asked) == FIRST + 6, done.output


def test_models_are_asked_from_one_process(
    theodolite: Run, recordings: Path, settings: Callable[[FakeProvider], Path]
) -> None:
    with FakeProvider(answers) as provider:
        settings(provider)
        shown = theodolite("scan", recordings, "--model", "shop", "--jobs", "2")
    assert shown.exit_code == 2
    assert "leave --jobs out, or add --no-probes" in shown.stderr
