"""Every module says what is public in it, and leaves nothing out."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from pathlib import Path

import pytest

import theodolite

SOURCE = Path(theodolite.__file__).parent
MODULES = sorted(
    name
    for _, name, _ in pkgutil.walk_packages(theodolite.__path__, "theodolite.")
    if not any(part.startswith("_") for part in name.split("."))
)


def _defined(tree: ast.Module) -> set[str]:
    """Return the public names that a module itself makes.

    Left out are type variables, which are not for use elsewhere, and constants in capitals, which may be listed.
    """
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign) and not _is_type_variable(node.value):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return {name for name in names if not name.startswith("_") and not name.isupper()}


def _is_type_variable(value: ast.expr) -> bool:
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Name)
        and value.func.id in {"TypeVar", "ParamSpec", "TypeVarTuple"}
    )


def _listed(tree: ast.Module) -> list[str] | None:
    """Return what `__all__` lists, or None where there is none. It must be a literal tuple."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
                assert isinstance(node.value, ast.Tuple), "__all__ must be a literal tuple"
                return [str(ast.literal_eval(item)) for item in node.value.elts]
    return None


@pytest.mark.parametrize("name", ["theodolite", *MODULES])
def test_all_is_complete_and_real(name: str) -> None:
    module = importlib.import_module(name)
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    defined, listed = _defined(tree), _listed(tree)
    if listed is None:
        assert not defined, f"{name} has no __all__ for {sorted(defined)}"
        return
    if "CHECKS" in listed:  # a suite of checks lists its laws there
        defined -= {check.__name__ for check in module.CHECKS}
    assert not defined - set(listed), f"__all__ of {name} leaves out {sorted(defined - set(listed))}"
    assert len(listed) == len(set(listed)), f"__all__ of {name} names something twice"
    for item in listed:
        assert hasattr(module, item), f"{name}.{item} does not exist"


def test_the_top_level_is_small_enough_to_read() -> None:
    listed = _listed(ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8")))
    assert listed is not None
    assert len(listed) <= 40
