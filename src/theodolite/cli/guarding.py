"""What `theodolite guard` and `theodolite pin` do."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from msgspec import Struct, structs

from theodolite.api.specified import Published, published
from theodolite.cli.bodies import Body, body_in, is_input, named, typed
from theodolite.cli.exits import FINDING, NOT_JUDGED, NOTHING, USAGE, say
from theodolite.cli.grades import Graded, Heavy, Told
from theodolite.cli.output import opened, spared, write_blocks
from theodolite.cli.progress import Display
from theodolite.cli.unchecked import Unchecked, unchecked
from theodolite.contracts.difference import Change, Grade, difference
from theodolite.contracts.lint import Flaw, Lint, Severity
from theodolite.contracts.lint import lint as lint_contracts
from theodolite.core.contract import Contract, Contracts, Divergence, Kind, Location, Origin
from theodolite.core.errors import ConfigError
from theodolite.core.policy import Outcome
from theodolite.core.text import brief
from theodolite.detectors.payload.answering import message, reason
from theodolite.detectors.payload.engine import Checker
from theodolite.detectors.payload.naming import meant
from theodolite.detectors.payload.repair import mending, plan
from theodolite.readers.specification import content
from theodolite.reports.contracts import Account, Found, Weight, blocks, junit, sarif, written

__all__ = ("Call", "account_of", "checked", "differing", "linted", "loaded", "tell")

_WEIGHTS = {Severity.ERROR: Weight.ERROR, Severity.WARNING: Weight.WARNING, Severity.NOTE: Weight.NOTE}
_GRADES = {Grade.BREAKING: Weight.ERROR, Grade.WIDENING: Weight.NOTE, Grade.TEXT_ONLY: Weight.WARNING}
_REPEATED = "it stands there more than once, and the last one counts here: leave the others out"
# Parts of a file that no check takes, of which each is told in a line of its own (our choice): `guard lint` has all.
_SAID = 5
_OUTCOMES = {
    Outcome.CLEAN: NOTHING,
    Outcome.FINDING: FINDING,
    Outcome.FAILED: USAGE,
    Outcome.NOT_ENOUGH_EVIDENCE: NOT_JUDGED,
}


def loaded(spec: Path, *, name: str = "schema") -> Contracts:
    """Return the contracts in a file, or in standard input; `name` is that of a plain JSON Schema.

    Raises ConfigError, which names the file, for what is none.
    """
    return _published(spec, name).contracts


def _published(spec: Path, name: str = "schema") -> Published:
    data = typed() if is_input(spec) else content(spec)
    with Display(f"reading {named(spec)}") as display:

        def advance(done: int, total: int) -> None:
            display.show(done, total, lambda: f"{done / 1e6:,.1f} of {total / 1e6:,.1f} MB")

        return published(data, source=named(spec), name=name, progress=advance)


def tell(account: Account, form: Told, output: Path | None = None) -> int:
    """Write an account to a file or to standard output, and return its exit status.

    Raises ConfigError where the file cannot be written.
    """
    with opened(output) as stream:
        if form is Told.TEXT:
            write_blocks(blocks(account), stream, terminal=output is None and sys.stdout.isatty())
        elif form is Told.JSON:
            stream.write(written(account))
        elif form is Told.JUNIT:
            stream.write(junit(account))
        else:
            from importlib.metadata import version  # noqa: PLC0415 - half of what --help costs

            stream.write(sarif(account, version("theodolite")))
    if output is not None:
        say(f"{account.headline}: {account.verdict}")
    return _OUTCOMES[account.outcome]


def linted(spec: Path, form: Told, fail_on: Heavy, output: Path | None = None) -> int:
    """Tell what of a specification can be checked and how good it is; return the exit status."""
    spared(output, spec)
    document = _published(spec)
    contracts = document.contracts
    told = lint_contracts(contracts)
    faults = _faults(contracts, spec)
    found = [_unchecked(one) for one in _each_once(faults)]
    found += [
        Found(rule="guard.repeated_key", weight=Weight.WARNING, pointer=pointer, what=_REPEATED)
        for pointer in document.duplicates
    ]
    found += [
        Found(
            rule=f"guard.{note.flaw}",
            weight=_WEIGHTS[note.flaw.severity],
            contract=note.contract,
            location=note.location or "",
            pointer=note.pointer,
            what=note.what,
        )
        for note in told.notes
    ]
    facts = {
        "operations": told.operations,
        "of them checked": _sound(told, faults),
        "of them in part": min(told.partly, _sound(told, faults)),
        "fields": told.fields,
        "of them with a type": told.typed,
    }
    account = Account(
        verb="guard lint",
        files=(str(spec),),
        outcome=Outcome.CLEAN if told.operations else Outcome.NOT_ENOUGH_EVIDENCE,
        facts=facts,
        found=tuple(found),
        contracts=tuple(contracts.contracts),
    )
    return tell(_counting(account, fail_on), form, output)


def _faults(contracts: Contracts, spec: Path) -> tuple[Unchecked, ...]:
    """Return what of contracts no check takes."""
    with Display(f"compiling {spec.name}") as display:
        return unchecked(
            contracts, lambda done, total: display.show(done, total, lambda: f"{done:,} of {total:,} parts")
        )


def _each_once(faults: Iterable[Unchecked]) -> list[Unchecked]:
    """Return the first of those that have one reason: a schema that many share is told of once."""
    return list({one.why: one for one in reversed([*faults])}.values())[::-1]


def _unchecked(one: Unchecked, file: str = "") -> Found:
    rule, what = f"guard.{Flaw.NOT_CHECKED}", f"no guard takes it: {one.why}"
    return Found(rule=rule, weight=Weight.ERROR, contract=one.contract, pointer=one.pointer, what=what, file=file)


def _sound(told: Lint, faults: Iterable[Unchecked]) -> int:
    """Return of how many operations a call is checked."""
    broken = {one.contract for one in faults if one.location is not Location.RESULT}
    return 0 if "" in broken else max(0, told.checked - len(broken))


class Call(Struct, frozen=True, kw_only=True):
    """A call to be checked; with `whole` the body has its arguments, those of path and query too."""

    spec: Path
    operation: str
    body: Path
    whole: bool = False


def checked(call: Call, form: Told, fail_on: Heavy, output: Path | None = None) -> int:
    """Tell where a body, or the arguments of a call, diverge from their contract; return the exit status."""
    spec, operation, body = call.spec, call.operation, call.body
    if is_input(spec) and is_input(body):
        raise ConfigError("SPEC and BODY cannot both be standard input: name a file for one of them")
    spared(output, spec, body)
    # Settings know a plain schema by the name of its file: so it may be called here, too.
    contracts = loaded(spec, name=spec.stem if operation == spec.stem else "schema")
    contract = contracts.find(operation)
    if contract is None:
        raise ConfigError(f"{named(spec)} has no operation {brief(operation)}{_alike(operation, contracts, spec)}")
    found, advice = _compared(contracts, contract, body_in(body), whole=call.whole)
    file = "" if is_input(body) else str(body)
    account = Account(
        verb="guard check",
        files=(str(spec), str(body)),
        outcome=Outcome.NOT_ENOUGH_EVIDENCE if contract.opaque else Outcome.CLEAN,
        found=tuple([structs.replace(one, file=file or str(spec)) for one in found]),
        contracts=(contract.name,),
        advice=advice,
    )
    return tell(_counting(account, fail_on), form, output)


def _compared(contracts: Contracts, contract: Contract, body: Body, *, whole: bool) -> tuple[list[Found], str]:
    """Return what is found in a body, and what a model may be told."""
    if body.fault:
        rule = f"payload.{Kind.NOT_JSON}"
        return [Found(rule=rule, weight=Weight.ERROR, contract=contract.name, what=body.fault)], ""
    # Of the others nothing is compiled: of the 7 MB of GitHub that takes a second.
    checker = Checker(structs.replace(contracts, contracts={contract.name: contract}, aliases={}))
    location = Location.BODY if contract.bodies and not whole else None
    divergences = checker.check(contract.name, body.value, location=location)
    wrong = [one for one in divergences if one.denies]
    # Of a place that is refused nothing else is said.
    refused = {one.pointer for one in wrong}
    observed = [
        one
        for one in checker.observe(contract.name, body.value, location=location)
        if one.pointer not in refused and one not in divergences
    ]

    def faults(other: object) -> frozenset[tuple[str, Kind]]:
        return _places(checker.check(contract.name, other, location=location))

    advice = ""
    if wrong:
        asked, accepts = contract, partial(checker.accepts, contract.name)
        if location is not None:
            asked = _body_alone(contract)
            alone_of = Contracts(contracts={asked.name: asked}, digest="", documents=contracts.documents)
            accepts = partial(Checker(alone_of).accepts, asked.name)
        found = plan(asked, contracts.documents, body.value, accepts)
        alone = mending(asked, contracts.documents, body.value, faults, _places(wrong)) if found is None else ()
        advice = message(wrong, found, alone)
    at = location or Location.ARGUMENTS
    repeated = [
        Found(
            rule="payload.repeated_key",
            weight=Weight.WARNING,
            contract=contract.name,
            location=at,
            pointer=pointer,
            what=_REPEATED,
        )
        for pointer in body.repeated
    ]
    return [*[_found(contract.name, one) for one in (*divergences, *observed)], *repeated], advice


def _counting(account: Account, fail_on: Heavy) -> Account:
    """Return an account in which findings from a weight on count; those that count make its outcome a finding."""
    counting = list(Weight)[: list(Heavy).index(fail_on) + 1]
    found = tuple([structs.replace(one, counts=one.weight in counting) for one in account.found])
    outcome = Outcome.FINDING if any(one.counts for one in found) else account.outcome
    return structs.replace(account, found=found, outcome=outcome)


def differing(old: Path, new: Path, form: Told, fail_on: Graded, output: Path | None = None) -> int:
    """Tell what changed between two files of contracts; return the exit status."""
    if is_input(old) and is_input(new):
        raise ConfigError("OLD and NEW cannot both be standard input: name a file for one of them")
    spared(output, old, new)
    before, after = loaded(old), loaded(new)
    with Display("comparing"):
        changes = difference(before, after)
    names = tuple(dict.fromkeys([*before.contracts, *after.contracts]))
    account = account_of("guard diff", (str(old), str(new)), names, changes, fail_on)
    worse = _fresh_faults((before, old), (after, new))
    if worse:
        account = structs.replace(account, found=(*worse, *account.found), outcome=Outcome.FINDING)
    return tell(account, form, output)


def _fresh_faults(before: tuple[Contracts, Path], after: tuple[Contracts, Path]) -> list[Found]:
    """Say what of either file no check takes, and return what of it the new one alone has."""
    sides = [(_faults(contracts, file), file) for contracts, file in (before, after)]
    for faults, file in sides:
        for one in _each_once(faults)[:_SAID]:
            say(f"warning: {named(file)}: {one.contract or 'the document'}: no guard takes it: {one.why}")
    (known, _), (faults, file) = sides
    broken = {one.contract for one in known}
    return [_unchecked(one, str(file)) for one in _each_once(one for one in faults if one.contract not in broken)]


def account_of(
    verb: str, files: tuple[str, ...], names: tuple[str, ...], changes: Iterable[Change], fail_on: Graded
) -> Account:
    """Return the account of changes: those from a grade on make it a finding."""
    listed = list(changes)
    counting = {grade.value for grade in list(Grade)[: list(Graded).index(fail_on) + 1]}
    found = tuple(
        Found(
            rule=f"contract.{change.grade}",
            weight=_GRADES[change.grade],
            contract=change.contract,
            location=change.location or "",
            pointer=change.pointer,
            what=f"{change.keyword}: {change.what}" if change.keyword else change.what,
            counts=change.grade.value in counting,
        )
        for change in listed
    )
    outcome = Outcome.FINDING if any(one.counts for one in found) else Outcome.CLEAN
    if not names:
        outcome = Outcome.NOT_ENOUGH_EVIDENCE
    facts = {grade.value.replace("_", " "): sum(change.grade is grade for change in listed) for grade in Grade}
    return Account(
        verb=verb,
        files=files,
        outcome=outcome,
        facts={"contracts": len(names), **facts},
        found=found,
        contracts=names,
    )


def _places(divergences: Iterable[Divergence]) -> frozenset[tuple[str, Kind]]:
    return frozenset([(one.pointer, one.kind) for one in divergences if one.denies])


def _found(name: str, one: Divergence) -> Found:
    return Found(
        rule=f"payload.{one.kind}",
        weight=Weight.ERROR if one.denies else Weight.NOTE,
        contract=name,
        location=one.location,
        pointer=one.pointer,
        what=reason(one),
    )


def _body_alone(contract: Contract) -> Contract:
    """Return a contract whose arguments are the body of another one's: that which calls are held against."""
    alone = structs.replace(contract.bodies[0], location=Location.ARGUMENTS)
    return structs.replace(contract, parts=(alone,))


def _alike(operation: str, contracts: Contracts, spec: Path) -> str:
    if any(one.origin is Origin.SCHEMA for one in contracts.contracts.values()):
        return f": a plain JSON Schema has one, it is called 'schema' or {brief(spec.stem)}"
    hint = meant(operation, contracts)
    return f": {hint}" if contracts.contracts else f", {hint}: see `theodolite guard lint`"
