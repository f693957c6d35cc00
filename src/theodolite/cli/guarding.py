"""What `theodolite guard` and `theodolite pin` do."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

import msgspec

from theodolite.cli.exits import FINDING, NOT_JUDGED, NOTHING
from theodolite.cli.grades import Graded, Heavy, Told
from theodolite.cli.output import write_blocks
from theodolite.cli.progress import Display
from theodolite.contracts import read
from theodolite.contracts.difference import Change, Grade, difference
from theodolite.contracts.lint import Severity
from theodolite.contracts.lint import lint as lint_contracts
from theodolite.core.contract import Contract, Contracts, Divergence, Kind, Location
from theodolite.core.errors import ConfigError
from theodolite.core.policy import Outcome
from theodolite.core.text import brief
from theodolite.detectors.payload.engine import Checker
from theodolite.detectors.payload.repair import message, plan, reason
from theodolite.readers.specification import Specifications
from theodolite.reports.contracts import Account, Found, Weight, blocks, junit, sarif, written

__all__ = ("account_of", "checked", "differing", "linted", "loaded", "tell")

# Bytes of a body that is read: more is no request that a model wrote (our choice).
LARGEST = 64_000_000
_WEIGHTS = {Severity.ERROR: Weight.ERROR, Severity.WARNING: Weight.WARNING, Severity.NOTE: Weight.NOTE}
_GRADES = {Grade.BREAKING: Weight.ERROR, Grade.WIDENING: Weight.NOTE, Grade.TEXT_ONLY: Weight.WARNING}
_OUTCOMES = {Outcome.CLEAN: NOTHING, Outcome.FINDING: FINDING, Outcome.NOT_ENOUGH_EVIDENCE: NOT_JUDGED}


def loaded(spec: Path) -> Contracts:
    """Return the contracts in a file. Raises ConfigError, which names the file, for what is none."""
    with Display(f"reading {spec.name}"):
        document = Specifications().load(spec).document
        try:
            return read(document)
        except ConfigError as error:
            raise ConfigError(f"{spec}: {error}") from error


def tell(account: Account, form: Told) -> int:
    """Write an account to standard output, and return its exit status."""
    if form is Told.TEXT:
        write_blocks(blocks(account), sys.stdout.buffer, terminal=sys.stdout.isatty())
    elif form is Told.JSON:
        sys.stdout.buffer.write(written(account))
    elif form is Told.JUNIT:
        sys.stdout.buffer.write(junit(account))
    else:
        from importlib.metadata import version  # noqa: PLC0415 - half of what --help costs

        sys.stdout.buffer.write(sarif(account, version("theodolite")))
    return _OUTCOMES[account.outcome]


def linted(spec: Path, form: Told, fail_on: Heavy) -> int:
    """Tell what of a specification can be checked and how good it is; return the exit status."""
    contracts = loaded(spec)
    told = lint_contracts(contracts)
    found = [
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
    counting = list(Weight)[: list(Heavy).index(fail_on) + 1]
    facts = {
        "operations": told.operations,
        "of them checked": told.checked,
        "of them in part": told.partly,
        "fields": told.fields,
        "of them with a type": told.typed,
    }
    return tell(
        Account(
            verb="guard lint",
            files=(str(spec),),
            outcome=_outcome(found, counting, judged=bool(told.operations)),
            facts=facts,
            found=tuple(found),
            contracts=tuple(contracts.contracts),
        ),
        form,
    )


def checked(spec: Path, operation: str, body: Path, form: Told, *, whole: bool) -> int:
    """Tell where a body, or the arguments of a call, diverge from their contract; return the exit status."""
    contracts = loaded(spec)
    contract = contracts.find(operation)
    if contract is None:
        raise ConfigError(f"{spec} has no operation {brief(operation)}{_alike(operation, contracts)}")
    checker = Checker(contracts)
    has_body = any(part.location is Location.BODY for part in contract.parts)
    location = Location.BODY if has_body and not whole else None
    value, divergences = _value(body)
    divergences = divergences or checker.check(contract.name, value, location=location)
    wrong = [one for one in divergences if one.denies]
    found = [_found(contract.name, one) for one in divergences]

    def fits(other: object) -> bool:
        return not any(one.denies for one in checker.check(contract.name, other, location=location))

    advice = ""
    if wrong and wrong[0].kind is not Kind.NOT_JSON:
        asked = _body_alone(contract) if location is not None else contract
        advice = message(wrong, plan(asked, contracts.documents, value, fits))
    return tell(
        Account(
            verb="guard check",
            files=(str(spec),),
            outcome=Outcome.FINDING if wrong else Outcome.CLEAN,
            found=tuple(found),
            contracts=(contract.name,),
            advice=advice,
        ),
        form,
    )


def differing(old: Path, new: Path, form: Told, fail_on: Graded) -> int:
    """Tell what changed between two files of contracts; return the exit status."""
    before, after = loaded(old), loaded(new)
    with Display("comparing"):
        changes = difference(before, after)
    names = tuple(dict.fromkeys([*before.contracts, *after.contracts]))
    return tell(account_of("guard diff", (str(old), str(new)), names, changes, fail_on), form)


def account_of(
    verb: str, files: tuple[str, ...], names: tuple[str, ...], changes: Iterable[Change], fail_on: Graded
) -> Account:
    """Return the account of changes: those from a grade on make it a finding."""
    listed = list(changes)
    found = tuple(
        Found(
            rule=f"contract.{change.grade}",
            weight=_GRADES[change.grade],
            contract=change.contract,
            location=change.location or "",
            pointer=change.pointer,
            what=f"{change.keyword}: {change.what}" if change.keyword else change.what,
        )
        for change in listed
    )
    counting = {grade.value for grade in list(Grade)[: list(Graded).index(fail_on) + 1]}
    outcome = Outcome.FINDING if any(change.grade.value in counting for change in listed) else Outcome.CLEAN
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


def _outcome(found: Sequence[Found], counting: Sequence[Weight], *, judged: bool) -> Outcome:
    if any(one.weight in counting for one in found):
        return Outcome.FINDING
    return Outcome.CLEAN if judged else Outcome.NOT_ENOUGH_EVIDENCE


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
    """Return a contract whose arguments are the body of another one's."""
    bodies = [part for part in contract.parts if part.location is Location.BODY]
    alone = msgspec.structs.replace(bodies[0], location=Location.ARGUMENTS)
    return msgspec.structs.replace(contract, parts=(alone,))


def _alike(operation: str, contracts: Contracts) -> str:
    names = [*contracts.contracts, *contracts.aliases]
    near = get_close_matches(operation, names, n=3, cutoff=0.5)
    few = near or names[:3]
    if not few:
        return ", nor any other: see `theodolite guard lint`"
    return f": {'did you mean' if near else 'it has, for instance,'} {', '.join(map(repr, few))}{'?' if near else ''}"


def _value(body: Path) -> tuple[object, tuple[Divergence, ...]]:
    """Return what a file holds, and where it is no JSON that it is none."""
    where = "standard input" if str(body) == "-" else str(body)
    try:
        if str(body) == "-":
            data = sys.stdin.buffer.read(LARGEST + 1)
        else:
            with body.open("rb") as stream:
                data = stream.read(LARGEST + 1)
    except OSError as error:
        raise ConfigError(f"{where}: cannot be read ({error.strerror}): give a file with a body as JSON") from error
    if len(data) > LARGEST:
        raise ConfigError(f"{where}: it is larger than {LARGEST // 1_000_000} MB: give the body of one call")
    try:
        return msgspec.json.decode(data), ()
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None, (Divergence(kind=Kind.NOT_JSON, pointer="", expected="JSON", observed="something else"),)
