"""What changed between two contracts, and whether a caller that kept to the old one still keeps to the new one.

Of a request everything that was accepted must still be; of a response nothing may come that could not come before. A
name that is no longer declared is breaking even where the schema takes undeclared names: what was sent under it may be
ignored without a word. A name that is declared now, and optional, is a widening, although a caller that used it
undeclared may be refused: such a caller kept to no contract.

Law: a value of a request that the old contract accepts, and that holds none of the names that are declared now, is
accepted by the new one unless a change of that part is breaking. Words (title, description, annotations) decide
nothing about a value and everything about what a model does with it: changes of them are told, as `TEXT_ONLY`. An
annotation that promised something, and does so no longer, is breaking: hosts decide by it which calls to ask about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from msgspec import UNSET, Struct, field

from theodolite.contracts.digest import Fingerprints, canonical
from theodolite.contracts.document import child
from theodolite.contracts.inclusion import Inclusion, Missed, Why
from theodolite.contracts.plain import Forms
from theodolite.contracts.surface import Surface
from theodolite.contracts.wording import changed, replaced
from theodolite.core.contract import Contract, Contracts, Location, Part

__all__ = ("Change", "Grade", "Memory", "compare", "difference", "worst")


class Grade(StrEnum):
    """What a change asks of callers: their attention at once, none, or a reader's."""

    BREAKING = "breaking"
    WIDENING = "widening"
    TEXT_ONLY = "text_only"


class Change(Struct, frozen=True, kw_only=True):
    """One change of a contract: where, of what, and how bad.

    `pointer` leads into the values of that location, `*` standing for any item or name; a parameter is its first step.
    `what` quotes the contracts alone, at most some 400 characters of them; of changed words it has both sides.
    """

    grade: Grade
    contract: str
    location: Location | None = None
    pointer: str = ""
    keyword: str = ""
    what: str = ""


_Documents = Mapping[str, object]


class Memory(Struct, frozen=True):
    """What was compared already of two sets of documents, which must live as long as it."""

    inclusion: Inclusion = field(default_factory=Inclusion)
    surface: Surface = field(default_factory=Surface)
    forms: dict[tuple[str, int], Forms] = field(default_factory=dict[tuple[str, int], Forms])

    def form(self, documents: _Documents, side: str) -> Forms:
        """Return the plain forms of the schemas of some documents, of the old or the new side."""
        key = (side, id(documents))
        if key not in self.forms:
            self.forms[key] = Forms(documents)
        return self.forms[key]


_ORDER = tuple(Grade)
# Characters of the name of an annotation that a change shows (our choice).
_KEYWORD = 60


def worst(changes: Iterable[Change]) -> Grade | None:
    """Return the worst grade among changes, None where there are none."""
    return min((change.grade for change in changes), key=_ORDER.index, default=None)


def difference(old: Contracts, new: Contracts) -> tuple[Change, ...]:
    """Return all that changed, contract by contract in the order of their names, the worst of each first.

    Linear in what both hold, with the bounds of `Inclusion`. The difference of a thing with itself is empty.

    >>> from theodolite.core.contract import Origin
    >>> def tool(**schema):
    ...     part = Part(location=Location.ARGUMENTS, schema=schema)
    ...     return Contracts(contracts={"t": Contract(name="t", origin=Origin.MCP, parts=(part,))}, digest="")
    >>> [print(one.grade, one.pointer, one.what) for one in difference(tool(type="object"), tool(required=["id"]))]
    breaking /id required now
    widening  object -> any
    [None, None]
    """
    memory, mine, theirs = Memory(), Fingerprints(old.documents), Fingerprints(new.documents)
    found: list[Change] = []
    for name in sorted({*old.contracts, *new.contracts}):
        before, after = old.contracts.get(name), new.contracts.get(name)
        if before is None:
            found.append(Change(grade=Grade.WIDENING, contract=name, what="added"))
        elif after is None:
            found.append(Change(grade=Grade.BREAKING, contract=name, what=_gone(before, new)))
        elif mine.of(before) != theirs.of(after):
            found += compare(before, after, old.documents, new.documents, memory)
    return tuple(found)


def compare(
    old: Contract, new: Contract, before: _Documents, after: _Documents, memory: Memory | None = None
) -> tuple[Change, ...]:
    """Return what changed between two contracts, whose references lead into `before` and `after`, the worst first.

    `memory` is of what was compared: one for all contracts of the same documents saves most of the work.
    """
    memory = memory or Memory()
    pair = _Pair(old.name, memory.form(before, "old"), memory.form(after, "new"), memory)
    found = [*pair.words(old, new), *pair.parts(old.parts, new.parts), *pair.results(old.results, new.results)]
    found += pair.split(old, new)
    if (old.method, old.path) != (new.method, new.path):
        what = f"{old.method} {old.path} -> {new.method} {new.path}"
        found.append(Change(grade=Grade.BREAKING, contract=old.name, keyword="path", what=what))
    once = {(one.location, one.pointer, one.keyword, one.grade): one for one in reversed(found)}
    loud = {key[:3] for key in once if key[3] is not Grade.TEXT_ONLY}
    kept = [
        one
        for key, one in once.items()
        if one.grade is Grade.BREAKING
        or (one.grade is Grade.WIDENING and (*key[:3], Grade.BREAKING) not in once)
        or (one.grade is Grade.TEXT_ONLY and key[:3] not in loud)
    ]
    return tuple(sorted(kept, key=lambda one: (_ORDER.index(one.grade), one.location or "", one.pointer, one.keyword)))


def _gone(contract: Contract, new: Contracts) -> str:
    other = new.aliases.get(f"{contract.method} {contract.path}") if contract.method else None
    return f"removed; its path is now called by {other}" if other else "removed"


class _Pair(Struct, frozen=True):
    """Two contracts of one name."""

    name: str
    before: Forms
    after: Forms
    memory: Memory

    def words(self, old: Contract, new: Contract) -> Iterator[Change]:
        for keyword in ("title", "description"):
            mine, theirs = getattr(old, keyword), getattr(new, keyword)
            if mine != theirs:
                called = "summary" if keyword == "title" and new.method else keyword
                yield self._said(Grade.TEXT_ONLY, called, changed(mine or UNSET, theirs or UNSET))
        kept, given = _promises(old.annotations), _promises(new.annotations)
        for name in sorted({*old.annotations, *new.annotations}):
            pair = old.annotations.get(name, UNSET), new.annotations.get(name, UNSET)
            if UNSET in pair or canonical([pair[0]]) != canonical([pair[1]]):
                broken = name in kept - given
                grade = Grade.BREAKING if broken else Grade.TEXT_ONLY
                lost = f", no longer promising {_PROMISES[name]}" if broken else ""
                yield self._said(grade, f"annotations.{name}"[:_KEYWORD], f"{changed(*pair)}{lost}")

    def split(self, old: Contract, new: Contract) -> Iterator[Change]:
        """Yield the names by which flat arguments are split, where only one of two contracts has them."""
        for name in sorted(old.fields ^ new.fields):
            gone = name in old.fields
            yield Change(
                grade=Grade.BREAKING if gone else Grade.WIDENING,
                contract=self.name,
                location=Location.BODY,
                pointer=child("", name),
                keyword="properties",
                what="no longer taken from flat arguments" if gone else "taken from flat arguments now",
            )

    def _said(self, grade: Grade, keyword: str, what: str) -> Change:
        return Change(grade=grade, contract=self.name, keyword=keyword, what=what)

    def parts(self, old: Iterable[Part], new: Iterable[Part]) -> Iterator[Change]:
        mine, theirs = _keyed(old), _keyed(new)
        for key, part in mine.items():
            if key in theirs:
                yield from self._part(part, theirs[key])
            else:
                yield self._change(Grade.BREAKING, part, "", "", f"{_called(part)} is no longer declared")
        alternatives = {part.location for part in mine.values() if part.location is Location.BODY}
        for key, part in theirs.items():
            if key not in mine:
                asks = part.required and part.location not in alternatives
                what = f"{_called(part)} is declared now{', and required' if asks else ''}"
                yield self._change(Grade.BREAKING if asks else Grade.WIDENING, part, "", "", what)

    def _part(self, old: Part, new: Part) -> Iterator[Change]:
        if old.required != new.required:
            grade, what = (Grade.BREAKING, "required now") if new.required else (Grade.WIDENING, "optional now")
            yield self._change(grade, new, "", "required", what)
        if (old.style, old.explode) != (new.style, new.explode):
            yield self._change(Grade.BREAKING, new, "", "style", "written in another way")
        yield from self._described(old, new)
        one, other = self.before.node(old.schema), self.after.node(new.schema)
        for missed in self.memory.inclusion.missed(one, other):
            grade = Grade.WIDENING if missed.why is Why.DECLARED else Grade.BREAKING
            yield self._missed(grade, new, missed)
        for missed in self.memory.inclusion.missed(other, one):
            if missed.why is not Why.DECLARED:  # what only the old one declares is found below
                yield self._missed(Grade.WIDENING, new, _turned(missed))
        for spoken in self.memory.surface.spoken(one, other):
            if spoken.keyword == "properties":
                grade = Grade.BREAKING if spoken.gone else Grade.WIDENING
                what = "no longer declared" if spoken.gone else "declared now"
            else:
                moved = spoken.keyword == "default" and spoken.gone
                grade = Grade.BREAKING if moved else Grade.TEXT_ONLY
                words = replaced(spoken.before, spoken.after)
                what = f"{words}, which is what is meant where it is left out" if moved else words
            yield self._change(grade, new, spoken.pointer, spoken.keyword, what)

    def results(self, old: Iterable[Part], new: Iterable[Part]) -> Iterator[Change]:
        mine, theirs = _keyed(old), _keyed(new)
        promised = any(_succeeds(part) for part in mine.values())
        for key, part in mine.items():
            if key in theirs:
                yield from self._result(part, theirs[key])
            else:
                grade = Grade.BREAKING if _succeeds(part) else Grade.WIDENING
                yield self._change(grade, part, "", "", f"{_called(part)} is no longer described")
        for key, part in theirs.items():
            if key not in mine:
                grade = Grade.BREAKING if promised and _succeeds(part) else Grade.WIDENING
                yield self._change(grade, part, "", "", f"{_called(part)} is described now")

    def _result(self, old: Part, new: Part) -> Iterator[Change]:
        yield from self._described(old, new)
        one, other = self.before.node(old.schema), self.after.node(new.schema)
        for missed in self.memory.inclusion.missed(other, one):
            yield self._missed(Grade.BREAKING, new, _turned(missed))
        for missed in self.memory.inclusion.missed(one, other):
            yield self._missed(Grade.WIDENING, new, missed)
        for spoken in self.memory.surface.spoken(one, other):
            if spoken.keyword == "properties":
                grade = Grade.BREAKING if spoken.gone else Grade.WIDENING
                what = "no longer declared" if spoken.gone else "declared now"
            else:
                grade, what = Grade.TEXT_ONLY, replaced(spoken.before, spoken.after)
            yield self._change(grade, new, spoken.pointer, spoken.keyword, what)

    def _described(self, old: Part, new: Part) -> Iterator[Change]:
        if old.description != new.description:
            words = changed(old.description or UNSET, new.description or UNSET)
            yield self._change(Grade.TEXT_ONLY, new, "", "description", words)

    def _missed(self, grade: Grade, part: Part, missed: Missed) -> Change:
        return self._change(grade, part, missed.pointer, missed.keyword, missed.what)

    def _change(self, grade: Grade, part: Part, pointer: str, keyword: str, what: str) -> Change:
        name = child("", part.name) if part.name else ""
        return Change(
            grade=grade,
            contract=self.name,
            location=part.location,
            pointer=name + pointer,
            keyword=keyword,
            what=f"{part.status}: {what}" if part.status else what,
        )


# What the hints of MCP promise (2025-06-18, ToolAnnotations), so that hosts may let calls pass without asking.
_PROMISES: Mapping[str, str] = {
    "readOnlyHint": "to change nothing",
    "destructiveHint": "to destroy nothing",
    "idempotentHint": "that a repeated call does no more",
    "openWorldHint": "to keep to a closed world",
}


def _promises(hints: Mapping[str, object]) -> set[str]:
    """Return what hints promise, with their defaults: those of what it destroys count where it is not read-only."""
    reads = hints.get("readOnlyHint") is True
    kept = {
        "readOnlyHint": reads,
        "destructiveHint": reads or hints.get("destructiveHint") is False,
        "idempotentHint": reads or hints.get("idempotentHint") is True,
        "openWorldHint": hints.get("openWorldHint") is False,
    }
    return {name for name, promised in kept.items() if promised}


def _keyed(parts: Iterable[Part]) -> dict[tuple[str, ...], Part]:
    """Return parts by what tells them apart; names of headers in lower case (RFC 9110, section 5.1)."""
    return {
        (
            part.location,
            part.name.lower() if part.location is Location.HEADER else part.name,
            part.media_type.lower(),
            part.status.upper(),
        ): part
        for part in parts
    }


def _called(part: Part) -> str:
    return " ".join([word for word in (part.location, part.name, part.media_type) if word])


def _succeeds(part: Part) -> bool:
    """Whether a result is what callers hope for: all but those of status 4xx and 5xx."""
    return part.status[:1] not in {"4", "5"}


def _turned(missed: Missed) -> Missed:
    """Return what is missed from the new to the old, in the order of time."""
    before, arrow, after = missed.what.partition(" -> ")
    turned = f"{after} -> {before}" if arrow else _OPPOSITE.get(missed.what, missed.what)
    return Missed(missed.pointer, missed.keyword, turned, missed.why)


_OPPOSITE: Mapping[str, str] = {
    "required now": "no longer required",
    "declared now": "no longer declared",
    "nothing is accepted any more": "nothing was accepted before",
    "an alternative is gone, or accepts less": "an alternative is new, or accepts more",
    "refuses what was not refused": "no longer refuses what was refused",
    "a condition is new or not as it was": "a condition is gone or not as it was",
}
