"""How alike a shadow is to the instance beside it, from what was checked."""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec import Struct, UnsetType

from theodolite.core.event import ModelCalled
from theodolite.detectors.behavior.tuning import ALIKE, Tuning

__all__ = ("Sampling", "ShadowIsolation")


class Sampling(Struct, frozen=True, kw_only=True, gc=False):
    """How a model is asked to sample; None where that is not known."""

    temperature: float | None = None
    top_p: float | None = None

    @classmethod
    def of(cls, event: ModelCalled) -> Sampling | None:
        """Return how a session sampled; None where that was not shown."""
        shown = [None if isinstance(value, UnsetType) else value for value in (event.temperature, event.top_p)]
        return None if shown == [None, None] else cls(temperature=shown[0], top_p=shown[1])

    def like(self, shown: Iterable[Sampling]) -> bool:
        """Whether a session sampled so each time, in all that it shows of that.

        >>> asked = Sampling(temperature=0.7, top_p=1.0)
        >>> asked.like([Sampling(temperature=0.7)]), asked.like([Sampling(temperature=0.7, top_p=0.9)]), asked.like([])
        (True, False, True)
        """
        return all(one.temperature in {None, self.temperature} and one.top_p in {None, self.top_p} for one in shown)


class ShadowIsolation(Struct, frozen=True, kw_only=True, gc=False):
    """What was checked of two arms, and of the session that they stand for.

    `same_model_version`: all answers came from one model id, which the session is known to use.
    `same_system_prompt_hash`: the hash of the prompt that all arms got is that of the session. `same_tool_schema_hash`:
    all arms got all tools that the session declared, which are compared as they are: no hash of them is made. One that
    declared none is taken to have none. `same_sampling_config`: one model gave all answers, and is known to sample as
    the session did in all that the session showed of that.

    Of model and prompt what nobody could look at is false. Of tools and sampling only what a session showed is held
    against the arms, since a host may have no way to know them: a session that shows nothing passes.

    What axor-probe declares beside these (no shared memory, tool state or raw context; one output schema; a canonical
    summary) holds by construction: a query holds none of it.

    >>> from theodolite.detectors.behavior.tuning import ESTIMATES
    >>> ShadowIsolation(same_model_version=True, same_system_prompt_hash=True).confidence(ESTIMATES)
    0.35
    """

    same_model_version: bool = False
    same_system_prompt_hash: bool = False
    same_tool_schema_hash: bool = False
    same_sampling_config: bool = False

    def confidence(self, tuning: Tuning) -> float:
        """Return the product of the penalties of what does not hold, in (0, 1]."""
        return math.prod([tuning.penalties[name] for name in self.lacking])

    @property
    def lacking(self) -> tuple[str, ...]:
        """What was not seen to hold."""
        return tuple([name for name in ALIKE if not getattr(self, name)])
