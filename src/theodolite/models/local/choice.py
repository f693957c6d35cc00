"""How likely each option is as the whole answer of a model: exact, from log-probabilities, without a draw.

The model is shown the options, its answer is begun with `{"answer": `, and each option is forced as what follows, up to
the closing brace, token by token as its tokenizer writes it. The log-probabilities of these tokens, before any
sampling, add up to that of the option; the probabilities are normalized over the options. So options may share first
tokens or be the beginning of one another, and no bias is put on any token.

Limits. It is the probability of the words, and longer or rarer words are less likely whatever they mean; the order in
which options are shown moves it too. Compare the same options in the same order between contexts, or average over their
rotations. The runtime computes many tokens at once with other roundings than one alone, which moved a probability by up
to 0.1 in our measurements. So what the options share is read anew for each query, and each option is scored from there:
equal queries then give equal numbers, as long as no other query is worked on beside them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from msgspec import Struct

from theodolite.core.errors import ModelError
from theodolite.core.reading import Cause

__all__ = ("Forced", "Scored", "Token", "chances", "force")


class Token(Struct, frozen=True):
    """A token of an answer, with its log-probability before sampling."""

    id: int
    logprob: float


class Scored(Struct, frozen=True):
    """What the runtime says of a forced answer. `tokens_evaluated` counts those of the prompt."""

    completion_probabilities: tuple[Token, ...] = ()
    tokens_evaluated: int = 0


class Forced(Struct, frozen=True):
    """An answer that is forced on the model after a prompt, both in tokens."""

    prompt: tuple[int, ...]
    answer: tuple[int, ...]

    @property
    def reading(self) -> dict[str, object]:
        """The request that has the prompt read, from its beginning, and nothing said."""
        return {"prompt": self.prompt, "n_predict": 0, "cache_prompt": False}

    @property
    def scoring(self) -> dict[str, object]:
        """The request that scores the answer, after a prompt that was read."""
        return {
            "prompt": self.prompt,
            "n_predict": len(self.answer),
            "grammar": "root ::= " + " ".join(f"<[{token}]>" for token in self.answer),
            "temperature": 0.0,
            "n_probs": 1,
            "cache_prompt": True,
        }

    def logprob(self, scored: Scored) -> float:
        """Return the log-probability of the answer. Raises ModelError when another one was scored."""
        said = scored.completion_probabilities
        total = math.fsum(token.logprob for token in said)
        if tuple([token.id for token in said]) != self.answer or math.isnan(total):
            what = "the embedded model did not score the option that it was given: another version of xllamacpp?"
            raise ModelError(what, cause=Cause.MALFORMED)
        return total


def force(texts: Sequence[str], tokenize: Callable[[str], tuple[int, ...]]) -> tuple[Forced, ...]:
    """Return each text split where the texts begin to differ, so that what they share is worked through once."""
    written = [tokenize(text) for text in texts]
    low, high = min(written), max(written)
    shared = next((place for place, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    return tuple([Forced(tokens[:shared], tokens[shared:]) for tokens in written])


def chances(logprobs: Sequence[float]) -> tuple[float, ...]:
    """Return the probabilities that some log-probabilities stand for, normalized to a sum of 1.

    >>> [round(chance, 3) for chance in chances([-3.0, -3.0, -5.0])]
    [0.468, 0.468, 0.063]
    """
    most = max(logprobs)
    weights = [math.exp(logprob - most) for logprob in logprobs]
    total = math.fsum(weights)
    return tuple([weight / total for weight in weights])
