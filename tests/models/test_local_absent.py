"""What the embedded model says where something that it needs is not there. Needs no weights."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path

import anyio
import pytest

from theodolite.core.errors import ConfigError, MissingExtraError, ModelError
from theodolite.core.inquiry import Query, Role
from theodolite.models.local import LocalModel
from theodolite.models.local.weights import SMOLLM2

QUERY = Query(role=Role.SUBJECT, prompt="Pay?")


def test_weights_that_were_not_pulled_are_told_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THEODOLITE_CACHE", str(tmp_path))
    with pytest.raises(ModelError, match=r"not on this machine .*: run `theodolite models pull`"):
        anyio.run(LocalModel().ask, QUERY)


def test_weights_that_were_changed_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEODOLITE_CACHE", str(tmp_path))
    SMOLLM2.path().parent.mkdir(parents=True)
    SMOLLM2.path().write_bytes(b"GGUF and something else")
    with pytest.raises(ModelError, match="SHA-256 begins with"):
        anyio.run(LocalModel().ask, QUERY)


def test_a_file_that_is_no_gguf_is_told(tmp_path: Path) -> None:
    (tmp_path / "letter.gguf").write_text("Dear Anna")
    for path, what in ((tmp_path / "letter.gguf", "no GGUF file"), (tmp_path / "absent.gguf", "cannot be read")):
        with pytest.raises(ModelError, match=what):
            anyio.run(LocalModel(path).ask, QUERY)


def test_an_absent_runtime_is_a_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec

    def found(name: str) -> ModuleSpec | None:
        return None if name == "xllamacpp" else real(name)

    monkeypatch.setattr(importlib.util, "find_spec", found)
    with pytest.raises(MissingExtraError, match=r"theodolite\[local\]"):
        LocalModel()


@pytest.mark.parametrize(
    "make",
    [
        lambda: LocalModel(max_concurrency=0),
        lambda: LocalModel(threads=0),
        lambda: LocalModel(context=0),
        lambda: LocalModel(max_tokens=-1),
    ],
)
def test_a_number_that_cannot_be_is_refused_when_it_is_made(make: Callable[[], LocalModel]) -> None:
    with pytest.raises(ConfigError, match=r"of a local model is (?:0|-1): give 1 or more"):
        make()


@pytest.mark.parametrize("temperature", [-0.1, math.inf, math.nan])
def test_a_temperature_that_cannot_be_is_refused(temperature: float) -> None:
    with pytest.raises(ConfigError, match="temperature"):
        LocalModel(temperature=temperature)


def test_its_name_is_that_of_the_weights_unless_it_is_given_one() -> None:
    assert LocalModel().name == "smollm2-135m-instruct"
    assert LocalModel(Path("folder/own-7b.Q4.gguf")).name == "own-7b.Q4"
    assert LocalModel(name="mine").name == "mine"
