"""Stand-ins for every port, without mocks: each obeys the laws of its port unless its name says otherwise."""

from theodolite.testing.fakes.clock import FakeClock
from theodolite.testing.fakes.detectors import (
    AskingDetector,
    NonsenseDetector,
    Question,
    QuietDetector,
    RaisingDetector,
    ScriptedDetector,
    Tally,
)
from theodolite.testing.fakes.integration import FakeHost, FakeIntegration
from theodolite.testing.fakes.models import ScriptedModel, SeededModel
from theodolite.testing.fakes.policies import PolicyModel
from theodolite.testing.fakes.redactors import RecordingRedactor
from theodolite.testing.fakes.shelves import FailingShelf, MemoryShelf
from theodolite.testing.fakes.stores import FullStore
from theodolite.testing.fakes.verifiers import ScriptedVerifier

__all__ = (
    "AskingDetector",
    "FailingShelf",
    "FakeClock",
    "FakeHost",
    "FakeIntegration",
    "FullStore",
    "MemoryShelf",
    "NonsenseDetector",
    "PolicyModel",
    "Question",
    "QuietDetector",
    "RaisingDetector",
    "RecordingRedactor",
    "ScriptedDetector",
    "ScriptedModel",
    "ScriptedVerifier",
    "SeededModel",
    "Tally",
)
