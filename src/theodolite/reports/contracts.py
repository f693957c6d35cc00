"""What was found in contracts, or in a call against one: for people, as JSON, and for code scanning and test views.

SARIF is version 2.1.0 (OASIS Standard, 27 March 2020). JUnit keeps to what Jenkins' and Ant's schemas have in common.
Every text is made inert, since a specification is somebody else's text. The forms but JSON are smaller than 5 MB: what
is left out is counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import groupby
from typing import Literal
from xml.etree import ElementTree as ET

import msgspec
from msgspec import Struct

from theodolite.core.policy import Outcome
from theodolite.reports.escaping import ascii_json, inert
from theodolite.reports.layout import Block, Heading, Paragraph, Span, Style, counted
from theodolite.reports.limits import NAME, QUOTE
from theodolite.reports.rules import rule
from theodolite.reports.sarif import SCHEMA, literal, located

__all__ = ("Account", "Found", "Weight", "blocks", "junit", "sarif", "written")

# Findings of one rule that a report for people shows, and of all that the forms for tools have: each is of at most two
# kilobytes there, so that all are below 5 MB (our choice; GitHub shows the first 5,000).
SHOWN, LISTED = 20, 2_000


class Weight(StrEnum):
    """How much a finding matters; the words of SARIF."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Found(Struct, frozen=True, kw_only=True):
    """One finding: the rule, the contract, where in its values, and what is to be said. No value of a call is in it.

    `file` is the one that it is about, where several were looked at; `counts` says whether it makes the outcome one.
    """

    rule: str
    weight: Weight
    contract: str = ""
    location: str = ""
    pointer: str = ""
    what: str = ""
    file: str = ""
    counts: bool = True


class Account(Struct, frozen=True, kw_only=True):
    """What a verb has to say: its outcome, what it found, counts by name, the contracts that it looked at."""

    schema: Literal[1] = 1
    verb: str
    files: tuple[str, ...]
    outcome: Outcome
    facts: Mapping[str, int] = {}
    found: tuple[Found, ...] = ()
    contracts: tuple[str, ...] = ()
    advice: str = ""

    @property
    def headline(self) -> str:
        """Return which files were looked at, in a few words."""
        joined = " -> ".join(self.files) if self.verb == "guard diff" else ", ".join(self.files)
        return " against ".join(reversed(self.files)) if self.verb == "guard check" else joined

    @property
    def verdict(self) -> str:
        """Return in a few words what it comes to."""
        if self.outcome is Outcome.NOT_ENOUGH_EVIDENCE:
            return "nothing to judge"
        if not self.found:
            return "nothing found"
        counting = sum(one.counts for one in self.found)
        several = counted(len(self.found), "finding")
        if counting == len(self.found):
            return several
        return f"{several}, {f'{counting:,}' if counting else 'none'} count{'s' * (counting <= 1)}"


_STYLES = {Weight.ERROR: Style.BAD, Weight.WARNING: Style.WARN, Weight.NOTE: Style.QUIET}


def written(account: Account) -> bytes:
    """Return the account as one document of JSON, in plain ASCII, with nothing left out."""
    return ascii_json(msgspec.json.encode(account)) + b"\n"


def blocks(account: Account) -> Iterator[Block]:
    """Yield the account for people: the counts, then the findings rule by rule, the weightiest first."""
    yield Heading((Span(f"{account.headline}: ", Style.STRONG), Span(account.verdict, _TONES[account.outcome])))
    if account.facts:
        yield Paragraph((Span(", ".join(_numbered(name, count) for name, count in account.facts.items())),))
    for (weight, name), several in groupby(_sorted(account.found), key=lambda one: (one.weight, one.rule)):
        listed = list(several)
        yield Heading((Span(f"{name} ", _STYLES[weight]), Span(f"({weight}, {len(listed):,})", Style.QUIET)))
        for one in listed[:SHOWN]:
            yield Paragraph((Span(f"{_place(one)}: ", Style.STRONG), Span(inert(one.what, 2 * QUOTE))))
        if len(listed) > SHOWN:
            yield Paragraph((Span(f"... and {len(listed) - SHOWN:,} more: --format json has all", Style.QUIET),))
    if account.advice:
        yield Heading((Span("For the model's next try", Style.STRONG),))
        for line in account.advice.splitlines():
            yield Paragraph((Span(line),))


_TONES = {
    Outcome.CLEAN: Style.GOOD,
    Outcome.FINDING: Style.BAD,
    Outcome.FAILED: Style.WARN,
    Outcome.NOT_ENOUGH_EVIDENCE: Style.WARN,
}


def _numbered(name: str, count: int) -> str:
    return counted(count, name.removesuffix("s")) if name.isalpha() and name.endswith("s") else f"{count:,} {name}"


def _sorted(found: Iterable[Found]) -> list[Found]:
    order = tuple(Weight)
    return sorted(found, key=lambda one: (order.index(one.weight), one.rule))


def _place(one: Found) -> str:
    where = f" {one.location}" if one.location else ""
    return inert(f"{one.contract}{where}{f' {one.pointer}' if one.pointer else ''}", QUOTE)


def sarif(account: Account, version: str) -> bytes:
    """Return the account as SARIF: a result for each finding, at the file that it is about, or else the last one."""
    found = _sorted(account.found)
    rules = {one.rule: one.weight for one in reversed(found)}
    notes: list[dict[str, object]] = []
    if len(found) > LISTED:
        text = f"... and {len(found) - LISTED:,} more findings: --format json has all"
        notes.append({"level": "warning", "message": {"text": text}})
    driver = {
        "name": "Theodolite",
        "version": inert(version, NAME),
        "rules": [_described(name, weight) for name, weight in rules.items()],
    }
    places = {name: place for place, name in enumerate(rules)}
    results = [_result(one, places[one.rule], one.file or account.files[-1]) for one in found[:LISTED]]
    run = {
        "tool": {"driver": driver},
        "results": results,
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notes}],
        "columnKind": "utf16CodeUnits",
    }
    return ascii_json(msgspec.json.encode({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})) + b"\n"


def _described(name: str, weight: Weight) -> dict[str, object]:
    known = rule(name)
    return {
        "id": inert(name, NAME),
        "shortDescription": {"text": inert(name, NAME).rpartition(".")[2].replace("_", " ")},
        "fullDescription": {"text": known.meaning},
        "help": {"text": f"{known.meaning} {known.remedy}"},
        "defaultConfiguration": {"level": weight.value},
    }


def _result(one: Found, place: int, file: str) -> dict[str, object]:
    told = f"{_place(one)}: {inert(one.what, QUOTE)}"
    name = inert(one.contract, QUOTE) or "contract"
    mark = hashlib.sha256(msgspec.json.encode([one.rule, one.contract, one.location, one.pointer])).hexdigest()[:32]
    return {
        "ruleId": inert(one.rule, NAME),
        "ruleIndex": place,
        "level": one.weight.value,
        "message": {"text": literal(told)},
        "locations": [
            {
                **located(file),
                "logicalLocations": [{"name": name, "fullyQualifiedName": _place(one) or name, "kind": "function"}],
            }
        ],
        "partialFingerprints": {"theodoliteContract/v1": mark, "primaryLocationLineHash": f"{mark[:16]}:1"},
    }


def junit(account: Account) -> bytes:
    """Return the account as JUnit: a case for each contract, which fails where something is found that counts.

    What does not count stands in the output of its case, so that the view is red where the exit status is.
    """
    cases: dict[str, list[Found]] = {name: [] for name in account.contracts}
    # What counts first, so that nothing that fails is what is left out.
    for one in sorted(_sorted(account.found), key=lambda one: not one.counts)[:LISTED]:
        cases.setdefault(one.contract, []).append(one)
    kept = dict(sorted(cases.items(), key=_standing)[:LISTED])
    failing = {name for name, several in kept.items() if any(one.counts for one in several)}
    skipped = account.outcome is Outcome.NOT_ENOUGH_EVIDENCE
    suite = ET.Element(
        "testsuite",
        name=f"theodolite {account.verb}",
        tests=str(len(kept) + skipped),
        failures=str(len(failing)),
        errors="0",
        skipped=str(int(skipped)),
        time="0",
    )
    properties = ET.SubElement(suite, "properties")
    facts = {**account.facts, "contracts": len(cases), "findings": len(account.found)}
    for name, value in facts.items():
        ET.SubElement(properties, "property", name=f"theodolite.{name.replace(' ', '_')}", value=str(value))
    for name, several in kept.items():
        case = _case(suite, name)
        if name in failing:
            lines = _lines([one for one in several if one.counts])
            ET.SubElement(case, "failure", message=lines[0], type="finding").text = "\n".join(lines)
        if aside := _lines([one for one in several if not one.counts]):
            ET.SubElement(case, "system-out").text = "\n".join(aside)
    if skipped:
        ET.SubElement(_case(suite, "contracts"), "skipped", message="nothing to judge")
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n'
    return f"{head}{ET.tostring(suite, encoding='unicode')}\n</testsuites>\n".encode()


def _standing(case: tuple[str, list[Found]]) -> int:
    """Return the place of a case where not all fit: those that fail first, then those with something to say."""
    return 0 if any(one.counts for one in case[1]) else 1 if case[1] else 2


def _lines(several: list[Found]) -> list[str]:
    lines = [f"{one.weight} {one.rule}: {_place(one)}: {inert(one.what, QUOTE)}" for one in several[:SHOWN]]
    return [*lines, f"... and {len(several) - SHOWN:,} more: --format json has all"] if len(several) > SHOWN else lines


def _case(suite: ET.Element, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname="theodolite.contracts", name=inert(name, QUOTE) or "-", time="0")
