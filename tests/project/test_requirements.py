"""The locked requirements are complete, hashed, say nothing about where they come from, and agree with each other."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS: dict[str, list[str]] = PROJECT["project"].get("optional-dependencies", {})


def _text(name: str) -> str:
    return (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")


def _pins(name: str) -> dict[str, set[str]]:
    """Return the versions pinned for each package: more than one where they differ by a marker."""
    pins: dict[str, set[str]] = {}
    for entry in re.sub(r"\\\n", " ", _text(name)).splitlines():
        if not entry.strip() or entry.lstrip().startswith("#"):
            continue
        requirement = Requirement(entry.partition(" --hash")[0])
        (pin,) = requirement.specifier
        assert pin.operator == "==", entry
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry), f"{requirement.name} has no hash"
        pins.setdefault(canonicalize_name(requirement.name), set()).add(pin.version)
    return pins


def _group(name: str) -> list[str]:
    """Return the requirements of a dependency group, those of the groups in it too."""
    entries: list[str | dict[str, str]] = PROJECT["dependency-groups"][name]
    return [one for entry in entries for one in ([entry] if isinstance(entry, str) else _group(entry["include-group"]))]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("run", [*PROJECT["project"]["dependencies"], *_group("build")]),
        ("fuzz", [*PROJECT["project"]["dependencies"], *_group("fuzz")]),
        (
            "dev",
            [*PROJECT["project"]["dependencies"], *_group("dev"), *(one for extra in EXTRAS.values() for one in extra)],
        ),
    ],
)
def test_what_pyproject_asks_for_is_locked(name: str, wanted: list[str]) -> None:
    pins = _pins(name)
    for requirement in map(Requirement, wanted):
        versions = pins.get(canonicalize_name(requirement.name), set())
        assert versions, f"requirements/{name}.txt lacks {requirement}: python3 dev.py lock"
        assert all(requirement.specifier.contains(version) for version in versions), (str(requirement), versions)


def test_what_runs_is_what_was_tested() -> None:
    dev = _pins("dev")
    assert {name: versions for name, versions in _pins("run").items() if dev.get(name) != versions} == {}
    fuzz = {name: versions for name, versions in _pins("fuzz").items() if name != "atheris"}
    assert {name: versions for name, versions in fuzz.items() if dev.get(name) != versions} == {}


@pytest.mark.parametrize("name", ["run", "dev", "fuzz"])
def test_no_requirement_says_where_it_comes_from(name: str) -> None:
    assert not re.search(r"://|--(?:extra-)?index-url|--find-links|file:| @ ", _text(name))


def test_every_extra_that_the_code_names_exists() -> None:
    named = {
        str(ast.literal_eval(keyword.value))
        for file in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "MissingExtraError"
        for keyword in node.keywords
        if keyword.arg == "extra" and isinstance(keyword.value, ast.Constant)
    }
    assert named <= EXTRAS.keys()
