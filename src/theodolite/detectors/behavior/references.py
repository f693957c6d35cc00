"""Benign contexts of like length, and what a reading is worth beside those that they gave.

Any context moves a model, an ordinary one too. What a session's context did is therefore held against what benign
contexts of like length do to the same probe on the same model.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from importlib.resources import files

import msgspec
from msgspec import Struct

from theodolite.core.gate import FEWEST_REFERENCES
from theodolite.core.inquiry import Message
from theodolite.core.text import brief, encodable
from theodolite.detectors.behavior.leading import KINDS, leading
from theodolite.detectors.behavior.readout import WORDINGS, spread_of

__all__ = (
    "Kind",
    "Length",
    "Reference",
    "Written",
    "as_long_as",
    "e_value",
    "faults",
    "held_against",
    "lacking",
    "like",
    "nearest",
    "one_sided",
    "p_value",
    "shipped",
    "z",
)

# Log-odds: what benign contexts spread less than is rounding. Our choice; a runtime that reads its tokens in other
# portions moved a probability by up to 0.1 in our measurement, which is more.
_LEAST_SPREAD = 0.05
# By what a session's highest z is weighed. Our choice, not fitted. With 40 references of 6 probes, all independent and
# normal, one reading whose z is 3, 4 or 5 then gives 7, 18 or 29 of the 41 that there are, six such readings 10, 25 or
# 35 (medians of 300 simulated sets).
_POWER = 2.0


class Kind(StrEnum):
    """Ordinary talk on an agent's own business, or what benign sessions have in common with attacked ones."""

    PLAIN = "plain"
    HARD = "hard"


class Length(StrEnum):
    """How long a context is, in characters: under 500, 2,000, 8,000, or longer. Our choice: steps of a factor 4."""

    BRIEF = "brief"
    SHORT = "short"
    MEDIUM = "medium"
    LONG = "long"

    @classmethod
    def of(cls, messages: Iterable[Message]) -> Length:
        """Return how long some messages are together.

        >>> Length.of([Message("user", "Is the branch open on Saturdays?")]).value
        'brief'
        """
        size = sum(len(message.text) for message in messages)
        return next((length for length, most in _MOST.items() if size < most), cls.LONG)


_MOST = {Length.BRIEF: 500, Length.SHORT: 2_000, Length.MEDIUM: 8_000}
# Of plain ones and of hard ones each. Our choice: a third of the fewest, where those that ship are half and half.
_FEWEST_OF_KIND = 10
# How much shorter than a session a benign context may be. Our choice.
_ALIKE = 0.8
# Contexts that are joined to one of medium length: four of some 770 characters, between 2,000 and 8,000.
_JOINED = 4


class Reference(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A benign context. `topic` says what it is about; of a hard one also why it is hard."""

    id: str
    kind: Kind
    topic: str
    said: tuple[Message, ...]


class Written(Struct, frozen=True, forbid_unknown_fields=True):
    """A benign context as a file has it: `said` has who spoke and the text of each message.

    Raises ValueError for an id that is more than a to z, digits, - and _, for nobody's words, and for a message that no
    session has: of another role than user, assistant or tool, or without text.
    """

    id: str
    kind: Kind
    topic: str
    said: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        if _ID.fullmatch(self.id) is None:
            raise ValueError(f"id is {brief(self.id)}: write a to z, digits, - and _, 64 at most, a letter first")
        if not self.said:
            raise ValueError("said has no message")
        for number, (role, text) in enumerate(self.said, 1):
            if role not in _ROLES:
                raise ValueError(f"said: message {number} is of {brief(role)}, which is none of {', '.join(_ROLES)}")
            if not text.strip() or not encodable(text):
                raise ValueError(f"said: message {number} has no text, or a lone surrogate")

    @property
    def reference(self) -> Reference:
        """The context, to be shown to a model."""
        said = tuple([Message(role, text) for role, text in self.said])
        return Reference(id=self.id, kind=self.kind, topic=self.topic, said=said)


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    version: str
    context: tuple[Written, ...]


_ID = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_ROLES = ("user", "assistant", "tool")


@cache
def shipped() -> tuple[Reference, ...]:
    """Return the contexts that come with the package, 40 of about 770 characters. Reads their file once."""
    text = files("theodolite.detectors.behavior").joinpath("references.toml").read_text(encoding="utf-8")
    return tuple([context.reference for context in msgspec.convert(tomllib.loads(text), _File).context])


def faults(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return what keeps a context from being a reference: what in it bears on the answer to a probe by its words.

    Those are verbs of the options, in any wording, or of the answers that are asked for in JSON; a letter that stands
    alone, as options are called by letter; and orders to answer in a certain form. Linear in the messages.

    >>> faults([Message("user", "Just say B."), Message("assistant", "A dog's life.")])
    ('a letter that stands alone', 'an order to answer in a certain form')
    """
    texts = [message.text for message in messages]
    found = {what for text in texts for what, _ in leading(text)}
    if any(wording.held(texts) for wording in WORDINGS):
        found.add(KINDS[0])
    return tuple(sorted(found, key=KINDS.index))


def like(length: Length, contexts: Sequence[Reference] | None = None) -> tuple[Reference, ...]:
    """Return the shipped contexts, or an operator's own, brought to a class of length.

    Own contexts are taken as they are, those that have that length. Of the shipped ones a brief one is the beginning,
    whole exchanges; a medium one is four of one kind joined, the one that it is named for last. So medium ones share
    messages and are less different from each other than sessions are. There are no long ones: twenty of a kind, joined
    by the dozen, would all be one context. Raises ValueError where fewer than 30 have the length, or fewer than 10 of
    either kind.
    """
    if contexts is None:
        made = [context for kind in Kind for context in _made(length, [one for one in shipped() if one.kind is kind])]
    else:
        made = [context for context in contexts if Length.of(context.said) is length]
    why = lacking(length, made)
    if why:
        raise ValueError(why)
    return tuple(made)


def lacking(length: Length, contexts: Sequence[Reference]) -> str:
    """Return what contexts of a length lack that a session could be held against; nothing where they are enough.

    A benign session may be under pressure, and a calm one may not: against one kind alone either would look drifted.
    """
    kinds = Counter(context.kind for context in contexts if Length.of(context.said) is length)
    if kinds.total() < FEWEST_REFERENCES:
        return (
            f"{kinds.total()} benign contexts are of the length {length.value!r}, and at least {FEWEST_REFERENCES} are "
            "needed: give your own"
        )
    few = next((kind for kind in Kind if kinds[kind] < _FEWEST_OF_KIND), None)
    if few is None:
        return ""
    return (
        f"{kinds[few]} of {kinds.total()} benign contexts of the length {length.value!r} are of the kind "
        f"{few.value!r}, and at least {_FEWEST_OF_KIND} of each kind are needed"
    )


def one_sided(contexts: Sequence[Reference]) -> str:
    """Return what contexts lack of a kind at a length that there are 30 of; nothing where they lack nothing there."""
    lengths = Counter([Length.of(context.said) for context in contexts])
    told = [lacking(length, contexts) for length, count in lengths.items() if count >= FEWEST_REFERENCES]
    return next(filter(None, told), "")


def held_against(length: Length, own: Sequence[Reference] = ()) -> tuple[Reference, ...]:
    """Return the contexts that a session of that length is held against: the operator's own, or the shipped ones.

    Own ones take the place of the shipped ones for a length that at least 30 of them have, 10 of each kind. Raises
    ValueError where neither are enough.
    """
    return like(length, own if length is Length.LONG or not lacking(length, own) else None)


def nearest(length: Length, own: Sequence[Reference] = ()) -> tuple[Reference, ...]:
    """Return what `held_against` does, and for long sessions without long contexts those of medium length."""
    try:
        return held_against(length, own)
    except ValueError:
        return held_against(Length.MEDIUM, own)


def as_long_as(like: Sequence[Message], contexts: Sequence[Reference], random: bytes) -> tuple[Message, ...]:
    """Return a benign context of like length: one of some, and where it is shorter others joined to it.

    Each is as likely as another to come first. Where a session is longer than all of them together, they come again.
    """
    size, said, left = sum(len(message.text) for message in like), list[Message](), int.from_bytes(random)
    among = list[Reference]()
    while not said or sum(len(message.text) for message in said) < _ALIKE * size:
        among = among or list(contexts)
        left, place = divmod(left, len(among))
        said.extend(among.pop(place).said)
    return tuple(said)


def _made(length: Length, contexts: Sequence[Reference]) -> Iterator[Reference]:
    for place, context in enumerate(contexts):
        if length is Length.BRIEF:
            yield msgspec.structs.replace(context, said=_beginning(context.said))
        elif length is Length.SHORT:
            yield context
        elif length is Length.MEDIUM:
            joined = [contexts[place - back] for back in range(_JOINED - 1, -1, -1)]
            yield msgspec.structs.replace(context, said=tuple([said for one in joined for said in one.said]))


def _beginning(said: Sequence[Message]) -> tuple[Message, ...]:
    """Return as many whole exchanges as are brief; an exchange ends before the user speaks again."""
    ends = [place for place, message in enumerate(said) if message.role == "user" and place]
    return tuple(said[: max(end for end in ends if end == ends[0] or Length.of(said[:end]) is Length.BRIEF)])


def z(value: float, references: Sequence[float]) -> float:
    """Return how many standard deviations a reading lies over the mean of the references. Refuses fewer than 30.

    A spread below 0.05 counts as 0.05.
    """
    _check(references)
    mean = math.fsum(references) / len(references)
    return (value - mean) / max(_LEAST_SPREAD, spread_of(references))


def p_value(value: float, references: Sequence[float]) -> float:
    """Return the share of references, and the reading itself, that are as high. Refuses fewer than 30 references.

    At most alpha with a probability of at most alpha, where the session is exchangeable with the references. With n of
    them it is never below 1 / (n + 1). Source: Vovk, Gammerman and Shafer, 2005, section 2.2.
    """
    _check(references)
    return (1 + sum(reference >= value for reference in references)) / (len(references) + 1)


def e_value(
    readings: Mapping[str, float], references: Mapping[str, Sequence[float]], *, power: float = _POWER
) -> float:
    """Return the e-value of the highest z of a session so far, beside the highest of each reference over all probes.

    `readings` has one reading of each probe that was asked, its first: a probe that is read again and again would get
    more chances than the references had. `references` has every probe that was measured, on the same contexts in the
    same order. Each context weighs exp(power z) of its highest z, as in `theodolite.stats.e_process.Maxima`.

    Where the session is exchangeable with the references, this reaches 1 / alpha at any time with a probability of at
    most alpha. For that the mean and the spread of a probe are taken over the references and the session together, and
    of a probe that was not asked every reference gets the highest z that any reading of the session could give it: so
    no later reading makes the whole smaller than what was said before it is worth. It reaches at most n + 1: with
    40 references never 100.

    Limits: sessions are exchangeable with references as far as these are like the operator's sessions, which nobody
    checks. Sources: Vovk, Conformal e-prediction, 2025; the bound is ours. Raises ValueError for fewer than 30
    references, for probes without the same number of them, or a reading of a probe that has none.

    >>> clean = {"dd_01": [step / 10 for step in range(40)], "se_01": [-step / 10 for step in range(40)]}
    >>> round(e_value({"dd_01": 2.0}, clean), 2), round(e_value({"dd_01": 9.0}, clean), 2)
    (0.12, 39.32)
    """
    if not readings.keys() <= references.keys():
        raise ValueError("a probe was read that has no references: measure them for it")
    sizes = {len(values) for values in references.values()}
    if len(sizes) > 1:
        raise ValueError("not all probes have the same references")
    if not readings:
        return 1.0
    own, highest = -math.inf, [-math.inf] * sizes.pop()
    for probe, values in references.items():
        _check(values)
        if probe in readings:
            score, scores = _together(readings[probe], values)
            own = max(own, score)
        else:
            scores = _ceilings(values)
        highest = [max(pair) for pair in zip(highest, scores, strict=True)]
    others = math.fsum(math.exp(min(700.0, power * (score - own))) for score in highest)
    return (len(highest) + 1) / (1.0 + others)


def _together(value: float, references: Sequence[float]) -> tuple[float, list[float]]:
    """Return the z of a reading and of the references, with the mean and the spread of all of them."""
    every = [value, *references]
    mean = math.fsum(every) / len(every)
    spread = math.sqrt(math.fsum((one - mean) ** 2 for one in every) / len(every))
    own, *others = [(one - mean) / max(_LEAST_SPREAD, spread) for one in every]
    return own, others


def _ceilings(references: Sequence[float]) -> list[float]:
    """Return the highest z of each reference that one more reading could give it.

    With a reading that moves the mean by u, the z of a reference that lies a over the mean of the references is
    (a - u) / sqrt(c + n u^2), c being their variance times n / (n + 1). Its maximum is at u = -c / (n a).
    """
    count = len(references)
    mean = math.fsum(references) / count
    spare = math.fsum((one - mean) ** 2 for one in references) / (count + 1)
    least = _LEAST_SPREAD**2
    ceilings: list[float] = []
    for above in [one - mean for one in references]:
        if above <= 0.0:
            ceiling = 1.0 / math.sqrt(count)
        elif spare * (1.0 + spare / (count * above * above)) >= least:
            ceiling = math.sqrt(above * above / spare + 1.0 / count)
        else:
            # The spread counts as the least one there: the most is reached where it just is that.
            ceiling = (above + math.sqrt((least - spare) / count)) / _LEAST_SPREAD
        ceilings.append(ceiling)
    return ceilings


def _check(references: Sequence[float]) -> None:
    if len(references) < FEWEST_REFERENCES:
        raise ValueError(f"{len(references)} references say too little: at least {FEWEST_REFERENCES} are needed")
