"""The operator's own benign contexts: read, wired, and refused where they would not do."""

from __future__ import annotations

from pathlib import Path

import pytest

from theodolite.config.probing import references_of
from theodolite.config.settings import Settings, read_settings
from theodolite.config.wiring import load
from theodolite.core.errors import ConfigError
from theodolite.core.inquiry import Message
from theodolite.detectors.behavior.references import Kind

SAID = '[["user", "When do you open? This is call {number}."], ["assistant", "At nine."]]'


def context(number: int, **fields: str) -> str:
    given = {"id": f'"own-{number}"', "kind": '"plain"', "topic": '"shop"', "said": SAID.format(number=number)}
    return "[[context]]\n" + "\n".join([f"{key} = {value}" for key, value in {**given, **fields}.items() if value])


def contexts(count: int = 30) -> str:
    return "\n".join([context(number, kind=('"plain"', '"hard"')[number % 2]) for number in range(count)])


def read(tmp_path: Path, text: str) -> str:
    """Return what is wrong with a file of contexts."""
    (tmp_path / "own.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as told:
        references_of("own.toml", Settings(folder=str(tmp_path)))
    return str(told.value).replace(str(tmp_path), "")


def test_they_are_read_as_those_that_are_shipped(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(f'version = "7"\n{contexts()}', encoding="utf-8")
    found = references_of("own.toml", Settings(folder=str(tmp_path)))
    assert len(found) == 30
    assert (found[3].id, found[3].kind, found[3].topic) == ("own-3", Kind.HARD, "shop")
    assert found[3].said == (Message("user", "When do you open? This is call 3."), Message("assistant", "At nine."))
    assert references_of("", Settings()) == ()


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"topic": ""}, "/own.toml: context 'own-0': 'topic' is missing"),
        ({"kind": '"odd"'}, "/own.toml: context 'own-0': kind: 'odd' is none of plain, hard"),
        ({"tpoic": '"x"', "topic": ""}, "unknown key 'tpoic'; did you mean 'topic'"),
        ({"id": "7"}, "/own.toml: context number 1: id must be text, not a whole number"),
        ({"id": '"Own 1"'}, "context 'Own 1': id is 'Own 1': write a to z"),
        ({"said": "[]"}, "context 'own-0': said has no message"),
        ({"said": '[["system", "Be brief."]]'}, "message 1 is of 'system', which is none of user, assistant, tool"),
        ({"said": '[["user", "Hi."], ["assistant", " "]]'}, "said: message 2 has no text"),
        (
            {"said": '[["user", "Please comply, yes or no?"]]'},
            "context 'own-0': said has a word of the answers, an order",
        ),
    ],
)
def test_a_bad_one_is_told_with_file_id_field_and_reason(tmp_path: Path, fields: dict[str, str], told: str) -> None:
    assert told in read(tmp_path, context(0, **fields))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[context]", "/own.toml is not TOML: "),
        ("", "/own.toml has no contexts: begin each with [[context]]"),
        ("context = 1", "/own.toml has no contexts"),
        ("context = [1]", "/own.toml: context number 1: "),
        ("[[contexts]]", "/own.toml: unknown key 'contexts'; begin each context with [[context]]"),
        (f"{context(1)}\n{context(1)}", "/own.toml: context 'own-1': id: there is one of that id already"),
        (
            f"{context(1)}\n{context(2, said=SAID.format(number=1))}",
            "/own.toml: context 'own-2': said: the same as that of 'own-1'",
        ),
        (
            contexts(29),
            "no length has at least 30 contexts, so that none would count: 29 brief, 0 short, 0 medium, 0 long",
        ),
        (
            contexts().replace('"hard"', '"plain"'),
            "/own.toml: 0 of 30 benign contexts of the length 'brief' are of the kind 'hard', and at least 10 of each",
        ),
        ("# " + "x" * 4_194_304, "/own.toml has 4,194,306 characters, and 4,194,304 are the most"),
    ],
)
def test_a_file_that_would_not_do_is_told(tmp_path: Path, text: str, told: str) -> None:
    assert told in read(tmp_path, text)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    settings = Settings(folder=str(tmp_path))
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9")
    with pytest.raises(ConfigError, match=r"absent\.toml cannot be read: No such file"):
        references_of("absent.toml", settings)
    with pytest.raises(ConfigError, match=r"^detectors\.behavior\.references: .*latin\.toml cannot be read"):
        references_of("latin.toml", settings)


def test_the_settings_name_the_file_and_a_bad_one_stops_there(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(contexts(29), encoding="utf-8")
    (tmp_path / "theodolite.toml").write_text(
        '[detectors.behavior]\nenabled = true\nreferences = "own.toml"\n', encoding="utf-8"
    )
    with pytest.raises(ConfigError, match="no length has at least 30"):
        load(tmp_path / "theodolite.toml")
    (tmp_path / "own.toml").write_text(contexts(), encoding="utf-8")
    assert read_settings(tmp_path / "theodolite.toml").detectors["behavior"]["references"] == "own.toml"
    with load(tmp_path / "theodolite.toml") as monitor:
        assert "behavior" in [detector.name for detector in monitor.detectors]
