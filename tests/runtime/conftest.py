"""A Monitor whose questions one model answers, in every role."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from theodolite.core.detector import AnyDetector
from theodolite.core.inquiry import Role
from theodolite.core.model import Model
from theodolite.core.store import Store
from theodolite.core.verifier import Verifier
from theodolite.runtime.drive import Panel
from theodolite.runtime.monitor import Monitor
from theodolite.testing.fakes import AskingDetector, FakeClock


def _answered(
    model: Model,
    *detectors: AnyDetector,
    timeout: float = 30.0,
    store: Store | None = None,
    verifiers: Iterable[Verifier] = (),
    clock: Callable[[], float] | None = None,
) -> Monitor:
    return Monitor(
        detectors or [AskingDetector()],
        verifiers=verifiers,
        panel=Panel(dict.fromkeys(Role, model), timeout=timeout),
        store=store,
        clock=clock or FakeClock(100.0),
    )


@pytest.fixture(scope="session")
def answered() -> Callable[..., Monitor]:
    """Return what makes a Monitor of a model that answers; of no detector but one that asks, unless some are given."""
    return _answered
