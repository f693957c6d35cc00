"""A verifier that asks one judge."""

from __future__ import annotations

from msgspec import Struct

from theodolite.core.inquiry import Dialogue, Query, Role
from theodolite.core.reading import Failure, Reading
from theodolite.core.verifier import Case

__all__ = ("AgreeingVerifier",)


class AgreeingVerifier:
    """Asks a judge whether the assistant shouted, and believes it."""

    name = "agreeing"
    version = "1"
    codes = frozenset({"shouting.capitals"})
    subject: type[Case] = Case

    def inquire(self, subject: Struct) -> Dialogue:
        """Ask once."""
        if not isinstance(subject, Case):
            raise TypeError(f"{self.name} is asked about a Case, not a {type(subject).__name__}")
        (answer,) = yield (Query(role=Role.JUDGE, prompt="Does the assistant shout?", options=("yes", "no")),)
        if isinstance(answer, Failure):
            return (Failure(detector=self.name, version=self.version, cause=answer.cause, detail=answer.detail),)
        score = float(any(draw.text == "yes" for draw in answer.draws))
        return (Reading(detector=self.name, version=self.version, code=subject.signal.code, score=score),)
