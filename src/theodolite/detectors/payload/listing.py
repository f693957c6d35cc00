"""What is wrong with a value that was refused, listed in time and never without a finding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from jsonschema_rs import ValidationError, Validator
from msgspec import Struct
from msgspec.structs import replace

from theodolite.core.arguments import is_mapping, is_sequence, pointer
from theodolite.core.contract import Divergence, Kind, Part
from theodolite.detectors.payload.kinds import Path, Place, tell, unnamed
from theodolite.detectors.payload.locating import Locating, Spot
from theodolite.detectors.payload.pruning import WIDTH, Pruned, prune, windows
from theodolite.detectors.payload.values import word

__all__ = ("MAX_ERRORS", "Listing")

MAX_ERRORS = 100
"""Findings of one call that are listed."""

# Errors that are looked through for the best of a few thousand: more are not told of anyway.
_LISTED = 4 * MAX_ERRORS
# Errors that are listed to find out whether something else would do: the engine needs some 15 us for each.
_TRIED = 4_000


class Listing(Struct, frozen=True, kw_only=True):
    """Lists what is wrong with values of one part. Cost: some 50 us and more, by what is wrong."""

    part: Part
    validator: Validator
    locating: Locating

    def of(self, value: object, prefix: str) -> tuple[Divergence, ...]:
        """Return the findings of a value that the validator has refused. At least one of them denies.

        At most 100 findings, and then one that says so. Of what is very long the first faulty stretch is listed.
        """
        found: list[Divergence] = []
        cut = False
        for copy in windows(value):
            cut = cut or bool(copy.cuts)
            if not self.validator.is_valid(copy.value):
                if (spot := self.locating.spot(self.part.schema, copy.value)) is not None:
                    return self._spotted(spot, copy, prefix)
                errors = islice((e for e in self.validator.iter_errors(copy.value) if not copy.caused(e)), _LISTED)
                found = list(islice(tell(errors, self._place(copy, prefix)), MAX_ERRORS + 1))
                if found:
                    break
        if not any(one.denies for one in found):
            place, first = self._place(Pruned(value=value, cuts={}), prefix), list(_first(self.validator, value))
            found = list(islice(tell(first, place), MAX_ERRORS + 1))
            if not found:  # a refusal is never without a finding, whatever there is to say of it
                found = [unnamed(error, place) for error in first] or [_refused(self.part, prefix)]
        if cut or len(found) > MAX_ERRORS:
            found = [*found[:MAX_ERRORS], _more(self.part, prefix)]
        return tuple(found)

    def _spotted(self, spot: Spot, copy: Pruned, prefix: str) -> tuple[Divergence, ...]:
        """Return the findings at one place of a value, or that nothing that is declared there accepts it."""
        for key in copy.original(spot.path):
            prefix = pointer(prefix, key)
        if spot.validator is not None:
            part = replace(self.part, schema=spot.schema, pointer="")
            return replace(self, part=part, validator=spot.validator).of(spot.value, prefix)
        return (
            Divergence(
                kind=Kind.UNION_NO_MATCH,
                location=self.part.location,
                pointer=prefix,
                expected="one of what is declared here",
                observed=word(spot.value),
                schema_pointer=self.part.pointer,
            ),
        )

    def _place(self, copy: Pruned, prefix: str) -> Place:
        part, validator = self.part, self.validator
        room = [_TRIED]

        def fits(path: Path, other: object) -> bool:
            if room[0] < 0:
                return False
            start = prune(other, most=WIDTH)
            whole = _replaced(copy.value, path, start.value)
            if not self.locating.lists(part.schema, whole):
                return validator.is_valid(whole)
            errors = list(validator.iter_errors(whole))
            room[0] -= len(errors)
            here = [error for error in errors if tuple(error.instance_path[: len(path)]) == path]
            return all(start.caused(error, path) for error in here)

        reference = part.schema.get("$ref") if isinstance(part.schema, Mapping) else None
        below = isinstance(reference, str) and "#/" in reference
        return Place(
            value=copy.value,
            fits=fits,
            original=copy.original,
            location=part.location,
            prefix=prefix,
            origin="" if below else part.pointer,
        )


def _first(validator: Validator, value: object) -> Iterator[ValidationError]:
    """Yield the first error alone: the engine lists all errors before it gives one away."""
    try:
        validator.validate(value)
    except ValidationError as error:
        yield error


def _refused(part: Part, prefix: str) -> Divergence:
    return Divergence(
        kind=Kind.CONTRACT_ERROR,
        location=part.location,
        pointer=prefix,
        expected="what the contract accepts",
        observed="something else",
        schema_pointer=part.pointer,
    )


def _more(part: Part, prefix: str) -> Divergence:
    """Return what says that not everything was listed."""
    return Divergence(
        kind=Kind.TOO_LARGE,
        location=part.location,
        pointer=prefix,
        expected=f"at most {MAX_ERRORS} findings, of {WIDTH} entries each",
        observed="perhaps more",
        denies=False,
    )


def _replaced(value: object, path: Path, other: object) -> object:
    """Return a value with another one at a path; what is on the way there is copied, the rest shared."""
    if not path:
        return other
    key, below = path[0], path[1:]
    if is_mapping(value):
        return {**value, key: _replaced(value.get(key), below, other)}
    if is_sequence(value) and isinstance(key, int):
        return [*value[:key], _replaced(value[key], below, other), *value[key + 1 :]]
    return value
