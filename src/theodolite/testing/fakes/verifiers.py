"""A verifier that settles a case as it is told to."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct

from theodolite.core.inquiry import Dialogue, Query, Role
from theodolite.core.reading import Cause, Failure, Reading
from theodolite.core.verifier import Case

__all__ = ("ScriptedVerifier",)


@dataclass(frozen=True, kw_only=True)
class ScriptedVerifier:
    """Asks a judge one question about an ambiguous signal, and says `verdict` whatever the answer is.

    `verdict` is a score for the code of the case, or a cause to fail with. A judge who fails makes it fail too.
    """

    codes: frozenset[str]
    verdict: float | Cause = 0.0
    name: str = "scripted_verifier"
    version: str = "1"
    subject: type[Case] = Case

    def inquire(self, subject: Struct) -> Dialogue:
        """Ask the judge once."""
        if not isinstance(subject, Case):
            raise TypeError(f"{self.name} is asked about a Case, not a {type(subject).__name__}")
        (answer,) = yield (Query(role=Role.JUDGE, prompt="Has the agent drifted?", options=("yes", "no")),)
        if isinstance(answer, Failure):
            return (self._failure(answer.cause, answer.detail),)
        if isinstance(self.verdict, Cause):
            return (self._failure(self.verdict, "as scripted"),)
        return (
            Reading(
                detector=self.name,
                version=self.version,
                code=subject.signal.code,
                score=self.verdict,
                models=(answer.model,),
            ),
        )

    def _failure(self, cause: Cause, detail: str) -> Failure:
        return Failure(detector=self.name, version=self.version, cause=cause, detail=detail)
