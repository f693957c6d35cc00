"""`import theodolite`: a small face, loaded when it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import theodolite


def loaded_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("name", theodolite.__all__)
def test_each_public_name_is_there_and_made_by_us(name: str) -> None:
    value: object = getattr(theodolite, name)
    assert str(getattr(value, "__module__", "")).startswith("theodolite.")
    assert name in dir(theodolite)


def test_the_names_are_sorted_few_and_named_once() -> None:
    assert list(theodolite.__all__) == sorted(theodolite.__all__, key=lambda name: (name.islower(), name))
    assert len(set(theodolite.__all__)) == len(theodolite.__all__) <= 40


def test_another_name_is_an_attribute_error() -> None:
    name = "Monitr"
    with pytest.raises(AttributeError, match="module 'theodolite' has no attribute 'Monitr'"):
        getattr(theodolite, name)


def test_a_name_is_loaded_once() -> None:
    assert theodolite.Monitor is theodolite.Monitor
    assert "Monitor" in vars(theodolite)


def test_importing_the_package_loads_nothing_heavy_and_nothing_of_ours() -> None:
    loaded = loaded_after("import theodolite")
    assert {name for name in loaded if name.startswith("theodolite")} == {"theodolite"}
    assert not loaded & {"sqlalchemy", "sqlite3", "anyio", "asyncio", "msgspec", "typer", "rich", "phonenumbers"}


def test_a_session_without_store_and_models_loads_neither_database_nor_event_loop() -> None:
    loaded = loaded_after(
        "import theodolite\n"
        "with theodolite.Monitor() as monitor:\n"
        "    monitor.session('s-1').observe(theodolite.ToolCallProposed(tool='t'))\n"
    )
    assert "theodolite.runtime.session" in loaded
    assert not loaded & {"sqlalchemy", "sqlite3", "anyio", "asyncio", "typer", "rich", "numpy"}
