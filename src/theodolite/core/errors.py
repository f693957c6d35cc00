"""Whose fault it is, as a type.

TheodoliteError
├── ConfigError        the caller: a setting, an argument, a file named on the command line
├── EventError         the host: an event that contradicts itself or its session
├── CalibrationError   the artefact: cannot be read, or does not fit what it is used for
├── ModelError         the model: timeout, refused, malformed
├── StoreError         the store: unavailable, full, or its chain is broken
├── HarnessError       the harness: a canary contract could not be run (not the same as one that failed)
└── MissingExtraError  the installation: an optional package is absent (also an ImportError)

CallBlocked stands apart: it is not a fault but an answer. Integrations raise it to stop a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from theodolite.core.reading import Cause

if TYPE_CHECKING:
    from theodolite.core.policy import Decision

__all__ = (
    "CalibrationError",
    "CallBlocked",
    "ConfigError",
    "EventError",
    "HarnessError",
    "MissingExtraError",
    "ModelError",
    "StoreError",
    "TheodoliteError",
)


class TheodoliteError(Exception):
    """Any error of this package. Every message says what was wrong, where, and what to do next."""


class ConfigError(TheodoliteError):
    """The caller asked for something that cannot be: fix the setting, argument or file that is named."""


class EventError(TheodoliteError):
    """The host sent an event that cannot be true, such as an inquiry settled twice."""


class CalibrationError(TheodoliteError):
    """A calibration artefact cannot be read or does not say what its schema asks for."""


class ModelError(TheodoliteError):
    """A model gave no usable answer: it timed out, refused, or answered with junk.

    `cause` says which, and goes into the Failure that the asker is sent: TIMEOUT; MALFORMED for an answer that cannot
    be read; ERROR for everything else, a provider that refuses included. A model that declines in words has answered.

    >>> ModelError("no answer within 30 s", cause=Cause.TIMEOUT).cause.value
    'timeout'
    """

    def __init__(self, *args: object, cause: Cause = Cause.ERROR) -> None:
        super().__init__(*args)
        self.cause = Cause(cause)


class StoreError(TheodoliteError):
    """Evidence could not be kept or read back, or the chain of records is broken."""


class HarnessError(TheodoliteError):
    """A canary contract could not be run, which says nothing about the monitor under test."""


class MissingExtraError(TheodoliteError, ImportError):
    """An optional package is not installed.

    >>> print(MissingExtraError(extra="openai", needed_for="models from OpenAI"))
    models from OpenAI need an extra that is not installed: pip install 'theodolite[openai]'
    """

    def __init__(self, *, extra: str, needed_for: str) -> None:
        super().__init__(f"{needed_for} need an extra that is not installed: pip install 'theodolite[{extra}]'")
        self.extra = extra


class CallBlocked(Exception):  # noqa: N818 - the answer "no" is not an error
    """A tool call is refused. Carries the decision, so that the host can say why.

    >>> from theodolite.core.policy import Decision
    >>> print(CallBlocked(Decision(session="s-1", seq=4, about=4, allowed=False)))
    call refused at event 4 of session s-1: no signal
    """

    def __init__(self, decision: Decision) -> None:
        codes = ", ".join(signal.code for signal in decision.signals if signal.alarmed) or "no signal"
        super().__init__(f"call refused at event {decision.about} of session {decision.session}: {codes}")
        self.decision = decision
