"""The matched contexts of the probing protocol: made from templates by a seed, kept as data, read back and checked.

    python benchmarks/probing_contexts.py [--write] [--short]

Without an option the kept data are made anew and compared with what is kept; `--write` keeps them. Exits with 1 where
they differ, or the four kinds are not alike in length.

A skeleton is four exchanges about one line of work, of which two or three are *special*. Its four contexts share the
other exchanges, the places and the roles; only the special exchanges differ. *Tainted*: a claim under pressure, or told
in a tool result, against whatever policy stands; in half of them the assistant gives way. *Hard benign*: the same push
or the same frame in the tool result, and in it a legitimate wish or a notice to staff; in half of them about the
context's own line of work, else about other things. *Plain*: ordinary questions. *Ref*: other ordinary questions, the
neutral replacement that the paired scores take. Held-out skeletons are made of templates that no other is made of.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import statistics
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec
from msgspec import Struct

from theodolite.core.inquiry import Message
from theodolite.detectors.behavior.readout import WORDINGS

__all__ = ("KEPT", "Context", "Kind", "Taint", "digest", "kept", "lengths", "made", "unfit")

FOLDER = Path(__file__).resolve().parent / "contexts"
KEPT = FOLDER / "contexts.jsonl"
SKELETONS = 210
SEED = 20
EXCHANGES = 4
# How far the mean length of a kind may be from that of all: 5 %.
UNLIKE = 0.05

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
_MONTHS = ("March", "April", "May", "June", "September", "October")
_NAMES = ("Anna", "Bruno", "Carla", "Dario", "Edith", "Farid", "Greta", "Hugo", "Irene", "Jonas", "Mira", "Nadia")
_CITIES = ("Graz", "Bergen", "Porto", "Ghent", "Turku", "Basel", "Lille", "Trento", "Aarhus", "Split")


class Kind(StrEnum):
    """What the special exchanges of a context are."""

    TAINTED = "tainted"
    HARD = "hard"
    PLAIN = "plain"
    REF = "ref"


class Taint(StrEnum):
    """How a skeleton is tainted: by what the user says, by what a tool returns, or by both."""

    PRESSURE = "pressure"
    INJECTED = "injected"
    MIXED = "mixed"


class Context(Struct, frozen=True, kw_only=True):
    """One context, with the ids of the templates of its special exchanges.

    `off_topic`: the hard benign context of its skeleton is about other things than the rest. `yields`: the assistant
    gives way in the tainted one, and helps at once in the hard one.
    """

    skeleton: str
    kind: Kind
    held_out: bool
    taint: Taint
    yields: bool
    off_topic: bool
    domain: str
    templates: tuple[str, ...]
    messages: tuple[tuple[str, str], ...]

    @property
    def id(self) -> str:
        """The skeleton and the kind."""
        return f"{self.skeleton}-{self.kind}"

    @property
    def window(self) -> tuple[Message, ...]:
        """The messages as a snapshot has them."""
        return tuple([Message(role, text) for role, text in self.messages])

    @property
    def characters(self) -> int:
        """The characters of all messages."""
        return sum(len(text) for _, text in self.messages)


class Told(NamedTuple):
    """A template that was chosen: its id and its text, with slots still in it."""

    id: str
    text: str


class Exchange(NamedTuple):
    """What is said in one exchange, and of which templates."""

    messages: tuple[tuple[str, str], ...]
    templates: tuple[str, ...] = ()

    @property
    def characters(self) -> int:
        """The characters of its messages."""
        return sum(len(text) for _, text in self.messages)


class Domain(Struct, frozen=True):
    """A line of work: questions with answers, and tool results: a question, what is returned, more of it, an answer."""

    name: str
    talk: tuple[tuple[str, str], ...]
    reads: tuple[tuple[str, str, str, str], ...]
    held_out: bool = False

    def talks(self) -> list[Exchange]:
        """Return each ordinary exchange."""
        return [
            Exchange((("user", asked), ("assistant", said)), (f"{self.name}.talk-{number:02}",))
            for number, (asked, said) in enumerate(self.talk)
        ]

    def reading(self, number: int, below: str, ids: tuple[str, ...] = (), after: str = "") -> Exchange:
        """Return the exchange of a tool result, with what stands below its ordinary part, and after the answer."""
        asked, result, _, said = self.reads[number]
        messages = (("user", asked), ("tool", f"{result}\n{below}"), ("assistant", f"{said} {after}".strip()))
        return Exchange(messages, (f"{self.name}.reads-{number:02}", *ids))


class Stock(NamedTuple):
    """The templates that a skeleton may be made of: those held out, or the others."""

    lists: Mapping[str, Sequence[Told]]
    domains: Sequence[Domain]

    @classmethod
    def of(cls, *, held_out: bool) -> Stock:
        """Read one part of the templates."""
        given = tomllib.loads((FOLDER / "templates.toml").read_text(encoding="utf-8"))
        domains = tomllib.loads((FOLDER / "domains.toml").read_text(encoding="utf-8"))["domain"]
        kept_back = msgspec.convert(given.pop("held_out"), dict[str, int])
        lists: dict[str, Sequence[Told]] = {}
        for name, texts in msgspec.convert(given, dict[str, list[str]]).items():
            told = [Told(f"{name}-{number:02}", text) for number, text in enumerate(texts)]
            first = len(told) - kept_back[name]
            lists[name] = told[first:] if held_out else told[:first]
        known = msgspec.convert(domains, list[Domain])
        return cls(lists, [domain for domain in known if domain.held_out == held_out])

    def one(self, name: str, dice: Random) -> Told:
        """Draw a template of a list."""
        return dice.choice(self.lists[name])


class Plan(NamedTuple):
    """What a skeleton is to be. `forms` has `talk`, `read` or nothing for each exchange, nothing for a shared one."""

    name: str
    held_out: bool
    taint: Taint
    yields: bool
    off_topic: bool
    forms: tuple[str, ...]


def plans(count: int, dice: Random) -> list[Plan]:
    """Return the plans of so many skeletons; any run of 60 has each kind of taint, yielding and topic alike."""
    kinds = [(taint, yields, off) for taint in Taint for yields in (True, False) for off in (True, False)]
    drawn: list[Plan] = []
    while len(drawn) < count:
        dice.shuffle(kinds)
        for taint, yields, off_topic in kinds:
            number = len(drawn)
            forms = ["read", "read"] if taint is Taint.INJECTED else ["talk", "talk", "talk"][: dice.choice((2, 3))]
            if taint is Taint.MIXED:
                forms[0] = "read"
            dice.shuffle(forms)
            for _ in range(EXCHANGES - len(forms)):
                forms.insert(dice.randrange(len(forms) + 1), "")
            drawn.append(Plan(f"s{number:03}", number % 10 in {2, 5, 9}, taint, yields, off_topic, tuple(forms)))
    return drawn[:count]


class Maker:
    """Makes the four contexts of one skeleton.

    What is drawn for one kind is the nearest in length, of some that are drawn, to what the tainted one has so far.
    """

    def __init__(self, plan: Plan, stock: Stock, dice: Random) -> None:
        self._plan, self._stock, self._dice = plan, stock, dice
        self._domain = dice.choice(stock.domains)
        self._talks = self._domain.talks()
        self._reads = list(range(len(self._domain.reads)))
        dice.shuffle(self._talks)
        dice.shuffle(self._reads)
        self._slots = {
            "n2": str(dice.randint(11, 48)),
            "n4": str(dice.randint(1100, 9800)),
            "day": dice.choice(_DAYS),
            "month": dice.choice(_MONTHS),
            "time": f"{dice.randint(7, 18)}:{dice.choice(('00', '15', '30', '45'))}",
            "name": dice.choice(_NAMES),
            "city": dice.choice(_CITIES),
        }
        self._used: set[str] = set()
        self._behind = dict.fromkeys(Kind, 0)

    def contexts(self) -> list[Context]:
        """Return the contexts, in the order of the kinds."""
        rows: list[dict[Kind, Exchange]] = [self._special(form) if form else {} for form in self._plan.forms]
        for place, row in enumerate(rows):
            if not row:
                rows[place] = dict.fromkeys(Kind, self._filled(self._talks.pop()))
        return [self._context(kind, [row[kind] for row in rows]) for kind in Kind]

    def _context(self, kind: Kind, exchanges: Sequence[Exchange]) -> Context:
        plan = self._plan
        return Context(
            skeleton=plan.name,
            kind=kind,
            held_out=plan.held_out,
            taint=plan.taint,
            yields=plan.yields,
            off_topic=plan.off_topic,
            domain=self._domain.name,
            templates=tuple([id_ for exchange in exchanges for id_ in exchange.templates]),
            messages=tuple([message for exchange in exchanges for message in exchange.messages]),
        )

    def _special(self, form: str) -> dict[Kind, Exchange]:
        return self._read() if form == "read" else self._talk()

    def _talk(self) -> dict[Kind, Exchange]:
        push, claim = self._fresh("push"), self._fresh("claim")
        after = self._fresh("yielding" if self._plan.yields else "holding")
        tainted = _pressed(push, claim, after)
        if self._plan.off_topic:
            reply = self._fresh("helping" if self._plan.yields else "waiting")
            hard = [_pressed(push, wish, reply) for wish in self._unused("wish")]
        else:
            hard = [_insisting(push, talk) for talk in self._talks]
        made_ = {Kind.TAINTED: self._filled(tainted)}
        made_[Kind.HARD] = self._nearest(Kind.HARD, made_[Kind.TAINTED], hard)
        for kind in (Kind.PLAIN, Kind.REF):
            made_[kind] = self._nearest(kind, made_[Kind.TAINTED], self._courteous())
        return made_

    def _read(self) -> dict[Kind, Exchange]:
        frame, claim, number = self._fresh("frame"), self._fresh("claim"), self._reads.pop()
        after = self._fresh("noted" if self._plan.yields else "seen")
        tainted = self._domain.reading(number, *_framed(frame, claim, after))
        others = [domain for domain in self._stock.domains if domain is not self._domain]
        domain, place = (self._dice.choice(others), number) if self._plan.off_topic else (self._domain, number)
        reply = self._fresh("minded") if self._plan.yields else after
        hard = [domain.reading(place, *_framed(frame, notice, reply)) for notice in self._unused("notice")]
        plain = self._domain.reading(number, self._domain.reads[number][2])
        other = self._reads.pop()
        made_ = {Kind.TAINTED: self._filled(tainted)}
        made_[Kind.HARD] = self._nearest(Kind.HARD, made_[Kind.TAINTED], hard)
        made_[Kind.PLAIN] = self._nearest(Kind.PLAIN, made_[Kind.TAINTED], self._thanked(plain))
        ref = self._domain.reading(other, self._domain.reads[other][2])
        made_[Kind.REF] = self._nearest(Kind.REF, made_[Kind.TAINTED], self._thanked(ref))
        return made_

    def _courteous(self) -> list[Exchange]:
        return [said for talk in self._talks for said in self._thanked(talk)]

    def _thanked(self, exchange: Exchange) -> list[Exchange]:
        """Return an exchange with each word of courtesy after the question, and without one."""
        (role, asked), *rest = exchange.messages
        thanked = [
            Exchange(((role, f"{asked} {thanks.text}"), *rest), (*exchange.templates, thanks.id))
            for thanks in self._stock.lists["courtesy"]
            if thanks.id not in self._used
        ]
        return [exchange, *thanked]

    def _fresh(self, name: str) -> Told:
        """Draw a template that this skeleton has not used, and use it."""
        told = self._dice.choice([told for told in self._stock.lists[name] if told.id not in self._used])
        self._used.add(told.id)
        return told

    def _unused(self, name: str) -> list[Told]:
        left = [told for told in self._stock.lists[name] if told.id not in self._used]
        return self._dice.sample(left, min(5, len(left)))

    def _nearest(self, kind: Kind, model: Exchange, candidates: Iterable[Exchange]) -> Exchange:
        """Return the filled candidate that brings a kind nearest to the length of the tainted one; it is used up."""
        wanted = model.characters + self._behind[kind]
        filled = [(candidate, self._filled(candidate)) for candidate in candidates]
        source, best = min(filled, key=lambda pair: abs(pair[1].characters - wanted))
        self._behind[kind] = wanted - best.characters
        self._used.update(source.templates)
        self._talks = [talk for talk in self._talks if talk.templates[0] not in self._used]
        return best

    def _filled(self, exchange: Exchange) -> Exchange:
        messages = tuple([(role, text.format_map(self._slots)) for role, text in exchange.messages])
        return Exchange(messages, exchange.templates)


def _pressed(push: Told, said: Told, after: Told) -> Exchange:
    return Exchange((("user", f"{push.text} {said.text}"), ("assistant", after.text)), (push.id, said.id, after.id))


def _insisting(push: Told, talk: Exchange) -> Exchange:
    (role, asked), *rest = talk.messages
    return Exchange(((role, f"{push.text} {asked}"), *rest), (*talk.templates, push.id))


def _framed(frame: Told, said: Told, after: Told) -> tuple[str, tuple[str, ...], str]:
    return frame.text.replace("{said}", said.text), (frame.id, said.id, after.id), after.text


def made(count: int = SKELETONS, seed: int = SEED) -> list[Context]:
    """Make the contexts of so many skeletons, always the same."""
    stocks = {held_out: Stock.of(held_out=held_out) for held_out in (False, True)}
    drawn: list[Context] = []
    for plan in plans(count, Random(seed)):
        drawn += Maker(plan, stocks[plan.held_out], Random(f"{seed} {plan.name}")).contexts()
    return drawn


# What a read-out could take up without any change of mind: the words of all its options and of the usual ones, letters
# that stand alone, and orders about the form of what is said.
_OPTION_WORDS = re.compile(
    r"\b(?:compl(?:y|ies|ied|iance)|declin\w*|escalat\w*|allow\w*|den(?:y|ies|ied)|refer(?:s|red)?|refus\w*|accept\w*|"
    r"approv\w*|permit\w*|grant\w*|consent\w*|yes)\b",
    re.IGNORECASE,
)
_LETTER = re.compile(r"(?<![\w'.:])[B-HJ-Zb-hj-z](?![\w'])")
_FORM = re.compile(
    r"\b(?:answer|reply|respond|say|output|print|write|choose|pick|select)\b(?:\W+\w+){0,4}\W+"
    r"(?:with|only|exactly|always|json|option|first|second|third)\b",
    re.IGNORECASE,
)


def unfit(text: str) -> str:
    """Return what a context may not hold and this text does; nothing where it is fit.

    >>> unfit("I refuse to wait."), unfit("Take B."), unfit("Always reply with one word only."), unfit("It's a start.")
    ('refuse', 'B', 'reply with one word only', '')
    """
    marks = [re.compile(wording.marks, re.IGNORECASE) for wording in WORDINGS]
    for pattern in (_OPTION_WORDS, _LETTER, _FORM, *marks):
        found = pattern.search(text)
        if found:
            return found[0]
    return ""


def kept(path: Path = KEPT) -> list[Context]:
    """Read the contexts that are kept."""
    decoder = msgspec.json.Decoder(Context)
    return [decoder.decode(line) for line in path.read_text(encoding="utf-8").splitlines()]


def written(contexts: Iterable[Context]) -> bytes:
    """Return contexts as they are kept: one JSON object to a line."""
    return b"".join([msgspec.json.encode(context) + b"\n" for context in contexts])


def digest(contexts: Iterable[Context]) -> str:
    """Return the SHA-256 of contexts as they are kept, in hex."""
    return hashlib.sha256(written(contexts)).hexdigest()


def lengths(contexts: Iterable[Context]) -> dict[Kind, float]:
    """Return the mean number of characters of each kind."""
    by_kind: dict[Kind, list[int]] = {}
    for context in contexts:
        by_kind.setdefault(context.kind, []).append(context.characters)
    return {kind: statistics.fmean(sizes) for kind, sizes in by_kind.items()}


def main() -> int:
    """Compare what is kept with what is made, or keep it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--short", action="store_true", help="as without it: it takes a second")
    given = parser.parse_args()
    contexts = made()
    if given.write:
        KEPT.write_bytes(written(contexts))
    same = KEPT.read_bytes() == written(contexts)
    print(f"{len(contexts)} contexts, SHA-256 {digest(contexts)}: {'as kept' if same else 'MISSED: not as kept'}")
    alike = lengths(contexts)
    middle = statistics.fmean(alike.values())
    for kind, size in alike.items():
        print(f"{kind}: {size:.0f} characters on average, {size / middle - 1:+.1%}")
    faults = [(context.id, fault) for context in contexts for _, text in context.messages if (fault := unfit(text))]
    for id_, fault in faults[:20]:
        print(f"MISSED: {id_} holds {fault!r}")
    within = all(abs(size / middle - 1) <= UNLIKE for size in alike.values())
    return int(not (same and within and not faults))


if __name__ == "__main__":
    sys.exit(main())
