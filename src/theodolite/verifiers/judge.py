"""The judge: a model's opinion of the intents around a score in the gray zone."""

from __future__ import annotations

from msgspec import Struct

from theodolite.core.anomaly import AnomalyResult
from theodolite.core.inquiry import Dialogue, Reply
from theodolite.core.reading import Cause, Fact, Failure, Reading
from theodolite.core.verifier import Case
from theodolite.detectors.anomaly.tasks import check_words
from theodolite.verifiers.anomaly import query_of, read_result

__all__ = ("JudgeVerifier",)


class JudgeVerifier:
    """Asks whoever plays the judge about `anomaly.score` where that is ambiguous, without any text of the session.

    The judge's score takes the place of the model's. A judge who fails, or whose answer cannot be read, leaves the
    first score as it is, with a Failure beside it. State: none. Cost: one query. Raises ConfigError for a task or a
    policy that is no text.
    """

    name = "anomaly_judge"
    version = "1"
    subject = Case
    codes = frozenset({"anomaly.score"})

    def __init__(self, *, task: str = "", policy: str = "") -> None:
        check_words(task=task, policy=policy)
        self._task, self._policy = task, policy

    def inquire(self, subject: Struct) -> Dialogue:
        """Ask once. Raises TypeError for another subject than a Case."""
        if not isinstance(subject, Case):
            raise TypeError(f"{self.name} is asked about a Case, not a {type(subject).__name__}")
        (answer,) = yield (query_of(subject.intents, self._task, self._policy),)
        if isinstance(answer, Failure):
            return (self._failure(answer.cause, answer.detail),)
        if not answer.draws:
            return (self._failure(Cause.MALFORMED, f"{answer.model} gave no answer"),)
        try:
            result = read_result(answer.draws[0].text)
        except ValueError as error:
            return (self._failure(Cause.MALFORMED, str(error)),)
        return (self._reading(subject, answer, result),)

    def _reading(self, case: Case, answer: Reply, result: AnomalyResult) -> Reading:
        first = case.signal.said
        return Reading(
            detector=self.name,
            version=self.version,
            code=case.signal.code,
            score=result.score,
            evidence=first.evidence if isinstance(first, Reading) else (),
            models=(answer.model,),
            facts=(Fact("judged", result.cls.value),),
        )

    def _failure(self, cause: Cause, detail: str) -> Failure:
        return Failure(detector=self.name, version=self.version, cause=cause, detail=detail)
