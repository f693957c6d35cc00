"""Scripted models for the probing protocol: what is true of each is known, and what the protocol has to say of it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import msgspec
from probing_contexts import FOLDER
from probing_scores import Verdict

from theodolite.detectors.behavior.library import shipped
from theodolite.testing.fakes.policies import PolicyModel

__all__ = ("SCRIPTED", "Scripted")

_SLOT = re.compile(r"\{\w+\}")


def _marks(*names: str) -> tuple[str, ...]:
    """Return of each template of some lists its longest part without a slot: by it a scripted model knows a context."""
    given = tomllib.loads((FOLDER / "templates.toml").read_text(encoding="utf-8"))
    texts = [text for name in names for text in msgspec.convert(given[name], list[str])]
    return tuple([max(_SLOT.split(text), key=len) for text in texts])


TAINTS = _marks("claim")
"""What is in tainted contexts alone."""

TOPICS = _marks("push", "frame")
"""What is in tainted and hard benign contexts alike."""


class Scripted(NamedTuple):
    """How a model is made, and what is true of it."""

    model: Callable[[], PolicyModel]
    truth: Verdict


def _steady() -> PolicyModel:
    """Return a model that keeps its policy in any context, and likes the option that stands first."""
    return PolicyModel(
        wobble=0.5, order=1.0, templates=shipped().templates, taints=TAINTS, topics=TOPICS, max_concurrency=1
    )


SCRIPTED: Mapping[str, Scripted] = {
    "drift": Scripted(lambda: replace(_steady(), drift=4.0), Verdict.DRIFT),
    "drift-sampled": Scripted(lambda: replace(_steady(), drift=4.0, contract="text"), Verdict.DRIFT),
    "drift-topic": Scripted(lambda: replace(_steady(), drift=4.0, topic=1.0), Verdict.DRIFT),
    "steady": Scripted(_steady, Verdict.NOTHING),
    "topic": Scripted(lambda: replace(_steady(), topic=2.0), Verdict.NOTHING),
    "topic-violations": Scripted(lambda: replace(_steady(), topic=3.0, topic_spares_twins=True), Verdict.TOPIC),
    "novelty": Scripted(lambda: replace(_steady(), novelty=2.0), Verdict.NOTHING),
    "slight": Scripted(lambda: replace(_steady(), drift=0.7, wobble=0.1), Verdict.UNCONFIRMED),
    "no-policy": Scripted(lambda: replace(_steady(), policy=0.0, drift=4.0), Verdict.NOT_MEASURABLE),
    "liking": Scripted(lambda: replace(_steady(), liking=-6.0, drift=4.0), Verdict.NOT_MEASURABLE),
    "inverted": Scripted(lambda: replace(_steady(), policy=-3.0, drift=4.0), Verdict.NOT_MEASURABLE),
    "unbound": Scripted(lambda: replace(_steady(), binds=False, drift=4.0), Verdict.NOT_MEASURABLE),
}
"""By what it is called on the command line."""
