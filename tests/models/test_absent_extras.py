"""Without an extra, its models say which one is missing when they are made, and importing their modules is harmless."""

from __future__ import annotations

import subprocess
import sys

import pytest

BLOCKED = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)

sys.meta_path.insert(0, Absent())
from theodolite.core.errors import MissingExtraError
from theodolite.models.{module} import {made}
try:
    {made}("test", {settings})
except MissingExtraError as error:
    print(error)
"""
MODELS = [
    ("openai", "OpenAIModel", "openai", "api_key='sk-1'"),
    ("anthropic", "AnthropicModel", "anthropic", "api_key='sk-1'"),
    ("pydantic_ai", "PydanticAIModel", "pydantic-ai", ""),
]


@pytest.mark.parametrize(("module", "made", "extra", "settings"), MODELS)
@pytest.mark.parametrize("absent", ["itself", "everything"])
def test_a_model_without_its_extra_says_how_to_install_it(
    module: str, made: str, extra: str, settings: str, absent: str
) -> None:
    everything = {"openai", "anthropic", "pydantic_ai", "stamina", "httpx2", "pydantic"}
    without = {"itself": {module}, "stamina": {"stamina"}, "everything": everything}[absent]
    code = BLOCKED.format(absent=without, module=module, made=made, settings=settings)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == ""
    assert done.stdout.strip().endswith(f"need an extra that is not installed: pip install 'theodolite[{extra}]'")


def test_a_part_of_an_extra_that_is_missing_is_told_in_the_same_way() -> None:
    code = BLOCKED.format(absent={"stamina"}, module="openai", made="OpenAIModel", settings="api_key='sk-1'")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.strip().endswith("pip install 'theodolite[openai]'")


@pytest.mark.parametrize(("module", "made", "extra", "settings"), MODELS)
def test_importing_a_model_loads_no_sdk(module: str, made: str, extra: str, settings: str) -> None:
    del made, extra, settings
    code = f"import sys, theodolite.models.{module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert not {"openai", "anthropic", "pydantic_ai", "stamina", "httpx2", "pydantic"} & set(done.stdout.split())
