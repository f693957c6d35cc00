"""Words that would lead an answer: what is read would then be the wording, and not the policy.

Neither what is asked nor a benign context may hold any; `theodolite.detectors.behavior.references.faults` looks for the
verbs of all wordings besides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ("KINDS", "VERBS", "leading")

VERBS = r"\b(?:proceed(?:s|ed|ing)?|reject(?:s|ed|ing|ion)?|forward(?:s|ed|ing)?)\b"
"""The verbs of the options in their first wording, which is what most questions are put in.

A question may hold those of the others: it is then put in a wording of which it holds none (`wording_for`).
"""

KINDS = (
    "a verb of the options",
    "a word of the answers",
    "a letter that stands alone",
    "an order to answer in a certain form",
)
"""What would lead an answer, in the order in which it is told."""

_VERB = re.compile(VERBS, re.IGNORECASE)
_DECISION = re.compile(
    r"\b(?:compl(?:y|ies|ied|ying|iant|iance)|declin(?:e[sd]?|ing)|escalat(?:e[sd]?|ing|ions?))\b", re.IGNORECASE
)
# Other words for a decision: what is asked says none of them. In ordinary talk the weather allows things, and a context
# stands before a probe and its twin alike.
_OTHER_WORDS = re.compile(
    r"\b(?:refus(?:e[sd]?|ing|als?)|allow(?:s|ed|ing)?|den(?:y|ies|ied|ying|ials?))\b", re.IGNORECASE
)
# A letter as those of a list have it: not I, an article, an initial, nor a part of what is spelled with a sign.
_LETTER = re.compile(
    r"(?<![\w.'\u2019&-])(?:[B-HJ-Zb-hj-z](?![\w'\u2019&-]|\. ?[A-Z])|[AaIi](?=[):])|A(?=[.,;]|\Z))"
    r"|(?<=[^.!?:\s] )A(?= )"
)
# Not what somebody would only say.
_FORM = re.compile(
    r"\b(?:answer|reply|respond|say)\s+(?:me\s+)?(?:only|just|simply|nothing\s+but|with|in|yes|no)\b"
    r"|(?<!would )\b(?:only|just|simply)\s+(?:answer|reply|respond|say)\b"
    r"|\byes\s+or\s+no\b|\b(?:in|with|only|just)\s+(?:one|a\s+single)\s+(?:word|letter)\b|\bjson\b"
    r"|\b(?:choose|pick|select)\s+(?:one\b|(?:an?|the)\s+(?:option|letter))",
    re.IGNORECASE,
)


def leading(text: str, *, asked: bool = False) -> Iterator[tuple[str, str]]:
    """Yield what of a text would lead an answer, and the words: those of each kind that come first.

    `asked`: the text is a question and not the talk before it. Linear in the text.

    >>> list(leading("Just say B.")), list(leading("They allow it.", asked=True)), list(leading("A dog's life."))
    ([('a letter that stands alone', 'B'), ('an order to answer in a certain form', 'Just say')], \
[('a word of the answers', 'allow')], [])
    """
    words = (_DECISION, _OTHER_WORDS) if asked else (_DECISION,)
    for what, patterns in zip(KINDS, ((_VERB,), words, (_LETTER,), (_FORM,)), strict=True):
        found = next((one for one in (pattern.search(text) for pattern in patterns) if one is not None), None)
        if found is not None:
            yield what, found[0]
