from __future__ import annotations

import inspect
import re

import pytest

from theodolite.core import errors
from theodolite.core.errors import CallBlocked, MissingExtraError, TheodoliteError
from theodolite.core.policy import Decision
from theodolite.core.reading import Cause, Failure, Level, Reading, Signal

DRAWN = re.findall(r"^[├└]── (\w+) +(.+)$", errors.__doc__ or "", re.MULTILINE)
KINDS = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, TheodoliteError)]


def test_every_error_is_drawn_in_the_tree_and_says_whose_fault_it_is() -> None:
    below = {kind.__name__ for kind in KINDS if kind is not TheodoliteError}
    assert {name for name, _ in DRAWN} == below
    assert all(whose.startswith("the ") and ":" in whose for _, whose in DRAWN)
    assert set(errors.__all__) == {*below, "TheodoliteError", "CallBlocked"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_is_one_of_ours_and_says_so_in_its_docstring(kind: type[TheodoliteError]) -> None:
    assert issubclass(kind, TheodoliteError)
    assert kind.__doc__
    assert kind is TheodoliteError or kind.__bases__[0] is TheodoliteError


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not MissingExtraError])
def test_an_error_says_what_it_was_told(kind: type[TheodoliteError]) -> None:
    with pytest.raises(TheodoliteError, match=r"^what was wrong$"):
        raise kind("what was wrong")


def test_a_missing_extra_names_the_extra_and_how_to_install_it() -> None:
    error = MissingExtraError(extra="openai", needed_for="models from OpenAI")
    assert str(error) == "models from OpenAI need an extra that is not installed: pip install 'theodolite[openai]'"
    assert error.extra == "openai"
    with pytest.raises(ImportError):
        raise error


def test_a_blocked_call_carries_the_decision_and_names_what_alarmed() -> None:
    said = Reading(detector="payload", version="1", code="payload.missing", score=1.0)
    quiet = Signal(said=Reading(detector="d", version="1", code="d.x", score=0.0))
    failed = Signal(said=Failure(detector="e", version="1", cause=Cause.ERROR))
    refused = Decision(
        session="s-1", seq=5, about=4, allowed=False, signals=(quiet, Signal(said=said, level=Level.STRONG), failed)
    )
    blocked = CallBlocked(refused)
    assert str(blocked) == "call refused at event 4 of session s-1: payload.missing"
    assert blocked.decision is refused
    assert not isinstance(blocked, TheodoliteError)
