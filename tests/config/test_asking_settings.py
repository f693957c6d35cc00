"""Settings of probes that cannot be meant are refused when they are read, by whichever verb, with what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from theodolite.cli.asking import of_recordings, settings_of
from theodolite.cli.health import examine
from theodolite.config.settings import Settings, read_settings
from theodolite.config.wiring import wire
from theodolite.core.errors import ConfigError

MODELS = '[models.shop]\nkind = "local"\n[models.other]\nkind = "local"\n'
KNOWN = (
    "known: detectors.behavior.schedule.context_growth_tokens, detectors.behavior.schedule.cooldown_window_seconds, "
    "detectors.behavior.schedule.external_content_threshold, detectors.behavior.schedule.jitter_seconds, "
    "detectors.behavior.schedule.max_probes_per_session"
)


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Return what gives the fault of some settings, the same from the command line and from doctor."""
    monkeypatch.chdir(tmp_path)

    def give(text: str, model: str | None = "shop") -> str:
        path = tmp_path / "theodolite.toml"
        path.write_text(f"plugins = false\n{text}\n{MODELS}", encoding="utf-8")
        with pytest.raises(ConfigError) as raised:
            settings_of(path, model=model, system=None)
        assert examine(path).broken == (str(raised.value),)
        assert str(raised.value).startswith(f"{path}: ")
        return str(raised.value).removeprefix(f"{path}: ")

    return give


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("jitter_seconds = -1", "detectors.behavior.schedule: jitter_seconds is a number of seconds from 0, not -1"),
        ("jitter_seconds = 'x'", "detectors.behavior.schedule.jitter_seconds must be a number, not text. "),
        ("max_probes_per_session = 0", "detectors.behavior.schedule: max_probes_per_session is a whole number from 1"),
        ("cooldown = 3", f"unknown key 'detectors.behavior.schedule.cooldown'; {KNOWN}"),
        (
            "jitter_second = 3",
            (
                "unknown key 'detectors.behavior.schedule.jitter_second'; did you mean 'detectors.behavior.schedule."
                "jitter_seconds'?"
            ),
        ),
    ],
)
def test_a_bad_value_is_refused_also_where_recordings_replace_it(
    refused: Callable[[str], str], text: str, said: str
) -> None:
    assert refused(f"[detectors.behavior.schedule]\n{text}").startswith(said)


@pytest.mark.parametrize("panel", ["", '[panel]\nsubject = "shop"'])
@pytest.mark.parametrize("model", ["shop", None])
def test_a_judge_that_nobody_plays_is_refused(refused: Callable[..., str], panel: str, model: str | None) -> None:
    said = refused(f"[detectors.behavior]\njudge = true\n{panel}", model)
    assert said == (
        "detectors.behavior.judge = true needs a model that judges: name one of [models] as judge under [panel], or "
        "leave judge = true out"
    )


def test_a_judge_that_is_named_stays_beside_the_model_of_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "theodolite.toml"
    panel = '[panel]\nsubject = "shop"\njudge = "other"\n'
    path.write_text(f"[detectors.behavior]\njudge = true\n{panel}{MODELS}", encoding="utf-8")
    settings = settings_of(path, model="local", system=None)
    assert (settings.panel.subject, settings.panel.judge) == ("local", "other")
    path.write_text(f"{panel}{MODELS}", encoding="utf-8")
    assert settings_of(path, model="local", system=None).panel.judge == ""


def test_code_is_held_to_the_same(tmp_path: Path) -> None:
    path = tmp_path / "theodolite.toml"
    path.write_text(f'[detectors.behavior]\njudge = true\n[panel]\nsubject = "shop"\n{MODELS}', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"judge = true needs a model that judges"):
        wire(read_settings(path), asks=False)


def test_the_name_of_a_file_is_no_system_prompt(refused: Callable[[str], str], tmp_path: Path) -> None:
    (tmp_path / "prompt.txt").write_text("You help.", encoding="utf-8")
    said = refused('[detectors.behavior]\nsystem = "prompt.txt"')
    assert said.startswith(
        "detectors.behavior.system is the text of the system prompt, and 'prompt.txt' is the name of a file: "
    )
    assert said.endswith("or name the file by --system of theodolite probe or scan")


@pytest.mark.parametrize("text", ["You help.", "prompt.txt", "", "a\\nb", "x" * 5000, "nul \\u0000"])
def test_what_names_no_file_is_a_system_prompt(tmp_path: Path, text: str) -> None:
    path = tmp_path / "theodolite.toml"
    path.write_text(f'[detectors.behavior]\nsystem = "{text}"\n', encoding="utf-8")
    assert settings_of(path, model=None, system=None).detectors["behavior"]["system"] is not None


def test_a_detector_that_is_off_is_asked_nothing(tmp_path: Path) -> None:
    path = tmp_path / "theodolite.toml"
    path.write_text("[detectors.behavior]\nenabled = false\njudge = true\n", encoding="utf-8")
    assert settings_of(path, model=None, system=None).panel.subject == ""


def test_where_nobody_is_asked_a_judge_is_no_matter() -> None:
    with wire(Settings(plugins=False, detectors={"behavior": {"judge": True}})) as instrument:
        assert "behavior" not in {detector.name for detector in instrument.monitor.detectors}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("price = {inptu = 1}", "models.a: unknown key 'price.inptu'; did you mean 'price.input'?"),
        ("price = {foo = 1}", "models.a: unknown key 'price.foo'; known: price.input, price.output"),
        ("folder = 'x'", "models.a: unknown key 'folder'; known: api_key_env, base_url, kind, max_concurrency, "),
    ],
)
def test_a_nested_key_that_is_unknown_is_told_which_there_are(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "theodolite.toml"
    path.write_text(f"[models.a]\nkind = 'openai'\nmodel = 'x'\n{text}\n", encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        read_settings(path)
    assert str(raised.value).removeprefix(f"{path}: ").startswith(said)


def test_recordings_keep_what_else_the_schedule_says(tmp_path: Path) -> None:
    path = tmp_path / "theodolite.toml"
    path.write_text(
        f'[detectors.behavior.schedule]\ncontext_growth_tokens = 7\n[panel]\nsubject = "shop"\n{MODELS}',
        encoding="utf-8",
    )
    table = of_recordings(settings_of(path, model=None, system=None), probes=3).detectors["behavior"]
    assert table["schedule"] == {
        "context_growth_tokens": 7,
        "jitter_seconds": 0.0,
        "cooldown_window_seconds": 0.0,
        "max_probes_per_session": 3,
    }
