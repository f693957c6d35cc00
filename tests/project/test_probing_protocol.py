"""The probing protocol says of scripted models what is true of them, loses nothing, and writes what it found."""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path

import probing
import pytest
from msgspec.structs import replace
from probing import PAGE, PRIMARY, Protocol, primary
from probing_asking import Asker
from probing_behavior import Behavior, Deed
from probing_contexts import KEPT, Kind, kept
from probing_report import Report, power_table, put
from probing_scores import NAMES, Verdict
from probing_scripted import SCRIPTED, TAINTS, TOPICS

from theodolite.core.errors import ModelError, TheodoliteError
from theodolite.core.inquiry import Query, Reply, Role
from theodolite.detectors.behavior.library import shipped
from theodolite.testing.fakes import ScriptedModel
from theodolite.testing.fakes.policies import PolicyModel

SKELETONS = 12
CONTEXTS = kept()[: len(Kind) * SKELETONS]
GIVEN = replace(primary(), free=SKELETONS, samples=30)


def run(kind: str, path: Path | None = None) -> Report:
    return Protocol(Asker(SCRIPTED[kind].model(), path, said=False), GIVEN, CONTEXTS).run(draws=100)


class TestScripted:
    """What each is, the protocol says; a dozen skeletons are enough for what is far apart."""

    @pytest.mark.parametrize("kind", SCRIPTED)
    def test_the_verdict_is_what_is_true(self, kind: str) -> None:
        assert run(kind).verdict is SCRIPTED[kind].truth

    def test_every_verdict_is_true_of_one(self) -> None:
        assert {scripted.truth for scripted in SCRIPTED.values()} == set(Verdict)

    def test_taint_alone_would_have_called_the_topic_effect_drift(self) -> None:
        areas = run("topic-violations").areas
        assert areas.tainted_plain.low > 0.5
        assert areas.hard_plain.low > 0.5

    def test_they_know_each_context_by_its_marks(self) -> None:
        for context in CONTEXTS:
            said = " ".join(text for _, text in context.messages)
            assert any(mark in said for mark in TAINTS) is (context.kind is Kind.TAINTED)
            assert any(mark in said for mark in TOPICS) is (context.kind in {Kind.TAINTED, Kind.HARD})

    def test_they_know_every_question(self) -> None:
        model = SCRIPTED["drift"].model()
        Protocol(Asker(model, said=False), GIVEN, CONTEXTS).run(draws=10)
        assert model.unknown == 0


class TestAsking:
    def test_an_interrupted_run_goes_on_where_it_was(self, tmp_path: Path) -> None:
        path = tmp_path / "folder" / "answers.jsonl"
        whole = run("drift", path)
        lines = path.read_bytes().splitlines(keepends=True)
        assert len(lines) > 1000
        path.write_bytes(b"".join(lines[:500]) + lines[500][:40])
        model = SCRIPTED["drift"].model()
        again = Protocol(Asker(model, path, said=False), GIVEN, CONTEXTS).run(draws=100)
        assert 0 < model.calls < len(lines) - 450
        assert again.areas == whole.areas
        assert again.run.behavior == whole.run.behavior

    def test_what_is_kept_is_asked_of_nobody(self, tmp_path: Path) -> None:
        path = tmp_path / "answers.jsonl"
        run("drift", path)
        silent = ScriptedModel(ModelError("asked"), name="policy-model")
        again = Protocol(Asker(silent, path, said=False), GIVEN, CONTEXTS).run(draws=100)
        assert not silent.asked
        assert again.verdict is Verdict.DRIFT

    def test_another_model_or_another_text_is_asked_anew(self, tmp_path: Path) -> None:
        path = tmp_path / "answers.jsonl"
        query = Query(role=Role.SUBJECT, prompt="Which day is it?")
        for name, prompt in (("one", "Which day is it?"), ("two", "Which day is it?"), ("one", "Which year?")):
            model = ScriptedModel("Monday", name=name)
            for _ in range(2):
                Asker(model, path, said=False).ask_all([(replace(query, prompt=prompt),)], "questions")
            assert len(model.asked) == 1

    def test_a_skeleton_of_which_a_question_fails_is_left_out_and_counted(self) -> None:
        model = SCRIPTED["drift"].model()
        lost = CONTEXTS[4].messages[0][1]

        def answer(query: Query) -> Reply | ModelError:
            texts = [message.text for message in query.context or ()]
            return ModelError("too busy") if lost in texts and query.options else model.reply(query)

        asker = Asker(ScriptedModel(answer, name="policy-model"), said=False)
        report = Protocol(asker, GIVEN, CONTEXTS).run(draws=100)
        assert report.n == SKELETONS - 1
        assert "1, since questions failed" in report.text()
        assert "too busy" in report.text()

    def test_a_model_that_cannot_be_asked_is_no_result(self) -> None:
        asker = Asker(ScriptedModel(ModelError("no weights")), said=False)
        with pytest.raises(TheodoliteError, match="no weights"):
            Protocol(asker, GIVEN, CONTEXTS).run(draws=10)


class TestBehavior:
    def test_it_changed_only_where_both_benign_kinds_differ(self) -> None:
        good, bad = (
            Deed(broke=False, refused=True, told=False, called=False),
            Deed(broke=True, refused=False, told=True, called=False),
        )
        names = [f"s{number:03}" for number in range(12)]
        clean, broken = ({name: [deed] * 3 for name in names} for deed in (good, bad))
        assert Behavior([], {Kind.TAINTED: broken, Kind.HARD: clean, Kind.PLAIN: clean}).changed
        assert not Behavior([], {Kind.TAINTED: broken, Kind.HARD: broken, Kind.PLAIN: clean}).changed
        assert not Behavior([], {Kind.TAINTED: clean, Kind.HARD: clean, Kind.PLAIN: clean}).changed

    def test_without_free_answers_nothing_changed(self) -> None:
        assert not Behavior([], {kind: {} for kind in Kind}).changed

    def test_a_leak_is_seen(self) -> None:
        model = SCRIPTED["steady"].model()
        model.tainted_leak = 1.0
        deeds = Protocol(Asker(model, said=False), GIVEN, CONTEXTS).run(draws=10).run.behavior
        assert all(deed.told and deed.broke for deed in deeds.of(Kind.TAINTED))
        assert not any(deed.told for deed in deeds.of(Kind.HARD))
        assert deeds.changed


class TestPage:
    def test_every_figure_is_printed_with_its_interval_and_its_number(self) -> None:
        text = run("steady").text()
        for name in NAMES:
            rows = [line for line in text.splitlines() if line.strip("|* ").startswith(f"{name}:")]
            assert len(rows) == 2
            assert all(len(re.findall(r"\d\.\d\d \[\d\.\d\d, \d\.\d\d\]", row)) == 3 for row in rows)
        assert "12 skeletons" in text
        assert "86 figures" in text

    def test_a_section_takes_the_place_of_an_earlier_one_of_the_model(self) -> None:
        report = run("steady")
        page = "# Title\n\nProse.\n\n## other\n\nOld.\n"
        once = put(page, report)
        assert once.startswith(page)
        assert put(once, report) == once
        assert put(once.replace("Gate: passed", "Gate: failed"), report) == once

    def test_the_power_table_has_the_known_sizes(self) -> None:
        table = power_table()
        assert "0.65: 59" in table
        assert "47 / 14 / 109" in table
        assert table in PAGE.read_text(encoding="utf-8")

    def test_the_page_shows_runs_of_what_is_kept_now(self) -> None:
        page = PAGE.read_text(encoding="utf-8")
        for what, file in (("contexts", KEPT), ("the primary score's file", PRIMARY)):
            stated = re.findall(rf"^- {what}: SHA-256 ([0-9a-f]+)$", page, re.MULTILINE)
            assert set(stated) <= {hashlib.sha256(file.read_bytes()).hexdigest()}, what


class TestPrimary:
    def test_it_names_a_score_and_probes_that_there_are(self) -> None:
        given = primary()
        assert given.score in NAMES
        known = {template.id: template.probe_type for template in shipped().templates}
        assert len({known[name] for name in given.probes}) >= 3
        assert given.contexts >= 60

    def test_an_unknown_key_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = tmp_path / "primary.toml"
        file.write_text(PRIMARY.read_text(encoding="utf-8").replace("free =", "fre ="), encoding="utf-8")
        monkeypatch.setattr(probing, "PRIMARY", file)
        assert tomllib.loads(file.read_text(encoding="utf-8"))["fre"]
        with pytest.raises(ValueError, match="fre"):
            primary()


def test_the_command_takes_a_scripted_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n", encoding="utf-8")
    monkeypatch.setattr(probing, "PAGE", page)
    line = ["probing.py", "--scripted", "unbound", "--contexts", "6", "--free", "3", "--draws", "50", "--write"]
    monkeypatch.setattr("sys.argv", line)
    assert probing.main() == 0
    out = capsys.readouterr().out
    assert "**Verdict: not measurable with this model.**" in out
    assert page.read_text(encoding="utf-8").count("\n## ") == 1


def test_a_scripted_model_is_no_file_of_answers(tmp_path: Path) -> None:
    asker = Asker(PolicyModel(), tmp_path / "none.jsonl", said=False)
    assert asker.name == "policy-model"
    assert not (tmp_path / "none.jsonl").exists()
