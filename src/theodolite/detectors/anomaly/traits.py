"""What is to be seen in a window of intents: named traits, as bits.

Each intent has some traits by itself; some weigh more once something from outside was read, or a secret. Only the
fields of intents are looked at, and the names of tools are not among them. No trait is a sign of harmlessness: what is
added to a window can raise its score and never lower it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum

from theodolite.core.intent import (
    DataFlow,
    DestinationKind,
    NormalizedIntent,
    Operation,
    Provenance,
    TargetKind,
)

__all__ = ("TRAITS", "UNEXPECTED", "Sign", "places_of", "sign_of", "traits_of")


class Sign(IntEnum):
    """What one intent shows. The first twelve are traits of the window that holds it."""

    SECRET_ACCESS = 1 << 0
    WRITES_OUTSIDE_WORKDIR = 1 << 1
    SYSTEM_PATH_WRITE = 1 << 2
    EXECUTES_GENERATED_CODE = 1 << 3
    EXTERNAL_TO_SHELL = 1 << 4
    PRIVATE_NETWORK = 1 << 5
    PACKAGE_INSTALL_UNTRUSTED = 1 << 6
    PACKAGE_INSTALL = 1 << 7
    SENDS_OUT = 1 << 8
    UNKNOWN_OPERATION = 1 << 9
    SYSTEM_PATH_READ = 1 << 10
    SECRET_SENT = 1 << 11
    # What is read with others, or belongs to a rule.
    NETWORK = 1 << 12
    EXTERNAL_READ = 1 << 13
    OUTBOUND = 1 << 14
    CLOUD_METADATA = 1 << 15
    DOCKER_SOCKET = 1 << 16
    AFTER_EXTERNAL_READ = 1 << 17
    AFTER_SECRET = 1 << 18


# As plain numbers and names: to look up the member of an Enum takes longer than all else that is done with it here.
_SECRET, _OUTSIDE, _SYSTEM_WRITE = (
    int(Sign.SECRET_ACCESS),
    int(Sign.WRITES_OUTSIDE_WORKDIR),
    int(Sign.SYSTEM_PATH_WRITE),
)
_RUNS_CODE, _SHELL, _PRIVATE = int(Sign.EXECUTES_GENERATED_CODE), int(Sign.EXTERNAL_TO_SHELL), int(Sign.PRIVATE_NETWORK)
_UNTRUSTED, _INSTALL, _SENDS = int(Sign.PACKAGE_INSTALL_UNTRUSTED), int(Sign.PACKAGE_INSTALL), int(Sign.SENDS_OUT)
_STRANGE, _SYSTEM_READ, _SECRET_SENT = int(Sign.UNKNOWN_OPERATION), int(Sign.SYSTEM_PATH_READ), int(Sign.SECRET_SENT)
_NETWORK, _EXTERNAL, _OUTBOUND = int(Sign.NETWORK), int(Sign.EXTERNAL_READ), int(Sign.OUTBOUND)
_CLOUD, _DOCKER = int(Sign.CLOUD_METADATA), int(Sign.DOCKER_SOCKET)
_PAST_EXTERNAL, _PAST_SECRET = int(Sign.AFTER_EXTERNAL_READ), int(Sign.AFTER_SECRET)
_AT_WORK, _AT_SECRET, _AT_SYSTEM, _AT_URL = (
    TargetKind.WORKDIR,
    TargetKind.SECRET,
    TargetKind.SYSTEM_PATH,
    TargetKind.EXTERNAL_URL,
)
_AT_PRIVATE, _AT_CLOUD, _AT_DOCKER = TargetKind.PRIVATE_NETWORK, TargetKind.CLOUD_METADATA, TargetKind.DOCKER_SOCKET
_TO_OUTSIDE, _TO_UNKNOWN, _TO_PRIVATE = (
    DestinationKind.EXTERNAL_DOMAIN,
    DestinationKind.UNKNOWN,
    DestinationKind.PRIVATE_NETWORK,
)
_WRITES, _INSTALLS, _ASKS = Operation.FILE_WRITE, Operation.PACKAGE_INSTALL, Operation.NETWORK_REQUEST
_RUNS, _UNLISTED = Operation.EXECUTE_GENERATED_CODE, Operation.UNKNOWN
_PAGE, _DOCS, _ANYBODY = Provenance.EXTERNAL_WEB, Provenance.OFFICIAL_DOCS, Provenance.UNKNOWN
_OUT, _UNCLEAR, _INTO_SHELL = DataFlow.LOCAL_TO_EXTERNAL, DataFlow.UNKNOWN, DataFlow.EXTERNAL_TO_SHELL

_DIRECT = 0xFFF & ~_INSTALL
# What weighs more after something from outside was read, and what after a secret was.
_AFTER_EXTERNAL = _SECRET | _OUTSIDE | _SYSTEM_WRITE | _RUNS_CODE | _PRIVATE | _INSTALL | _SENDS
_AFTER_SECRET = _NETWORK | _SENDS | _RUNS_CODE | _SHELL
_WITH_OTHERS = _AFTER_EXTERNAL | _AFTER_SECRET | _STRANGE
_EXTERNAL_AT, _SECRET_AT, _REPEATED_AT = 16, 32, 48
# Of these, three in one window are a pattern of their own: our choice.
_REPEATABLE = (_SECRET, _PRIVATE, _SENDS, _STRANGE)
_REPEATED = 3

UNEXPECTED = 1 << 60
"""The bit of a tool class that the stated task does not explain."""


def _named() -> Iterator[tuple[int, str]]:
    kinds = (
        (0, _DIRECT, "{}"),
        (_EXTERNAL_AT, _AFTER_EXTERNAL, "{}_after_external_read"),
        (_SECRET_AT, _AFTER_SECRET, "{}_after_secret"),
        (_REPEATED_AT, sum(_REPEATABLE), "repeated_{}"),
    )
    for at, mask, form in kinds:
        for sign in Sign:
            if sign & mask:
                yield int(sign) << at, form.format(sign.name.lower())
    yield UNEXPECTED, "unexpected_for_task"


TRAITS: dict[int, str] = dict(_named())
"""The name of each trait by its bit."""


def sign_of(intent: NormalizedIntent) -> int:
    """Return the signs of an intent: bits of Sign. Takes less than a microsecond."""
    operation = intent.operation
    sign = _of_target(intent) | _of_flow(intent)
    if intent.executes_generated_code or operation is _RUNS:
        sign |= _RUNS_CODE
    elif operation is _UNLISTED:
        sign |= _STRANGE
    elif operation is _INSTALLS:
        provenance = intent.provenance
        sign |= _INSTALL | _UNTRUSTED if provenance is _PAGE or provenance is _ANYBODY else _INSTALL
    if intent.after_external_read:
        sign |= _PAST_EXTERNAL
    if intent.after_secret_access:
        sign |= _PAST_SECRET
    return sign


def _of_target(intent: NormalizedIntent) -> int:
    target = intent.target_kind
    sign = _SECRET if intent.reads_secret_like_data else 0
    if intent.writes_outside_workdir:
        sign |= _OUTSIDE
    if target is _AT_WORK:
        return sign
    if target is _AT_SECRET:
        return sign if intent.operation is _WRITES else sign | _SECRET
    if target is _AT_SYSTEM:
        return sign if intent.operation is _INSTALLS else sign | _of_system(intent)
    if target is _AT_PRIVATE:
        return sign | _PRIVATE
    if target is _AT_CLOUD:
        return sign | _CLOUD
    return sign | _DOCKER if target is _AT_DOCKER else sign


def _of_system(intent: NormalizedIntent) -> int:
    return _SYSTEM_WRITE if intent.operation is _WRITES or intent.writes_outside_workdir else _SYSTEM_READ


def _of_flow(intent: NormalizedIntent) -> int:
    flow, provenance, destination = intent.data_flow, intent.provenance, intent.destination_kind
    page = provenance is _PAGE
    sign = _EXTERNAL if page else 0
    if flow is _INTO_SHELL:
        sign |= _SHELL
    if destination is _TO_PRIVATE:
        sign |= _PRIVATE
    if provenance is _DOCS:
        return sign
    outward = destination is _TO_OUTSIDE or destination is _TO_UNKNOWN
    if outward and (flow is _OUT or flow is _UNCLEAR):
        # What asks a page for its text sends the question only, which may hold something.
        sign |= _NETWORK | _OUTBOUND if page else _NETWORK | _OUTBOUND | _SENDS
        return sign | _SECRET_SENT if intent.reads_secret_like_data else sign
    if intent.operation is _ASKS and (destination is _TO_OUTSIDE or intent.target_kind is _AT_URL):
        sign |= _NETWORK | _EXTERNAL
        # Where it goes is not seen, and so neither is what it says there. A bare question says nothing.
        return sign | _OUTBOUND if destination is _TO_UNKNOWN else sign
    return sign


def traits_of(signs: Iterable[int]) -> int:
    """Return the traits of a window by the signs of its intents, oldest first. O(1) for each.

    >>> read = NormalizedIntent(tool="cat", target_kind="secret", after_external_read=True)
    >>> [TRAITS[bit] for bit in TRAITS if bit & traits_of([sign_of(read)])]
    ['secret_access', 'secret_access_after_external_read']
    """
    traits = external = secret = 0
    often: list[int] = []
    for sign in signs:
        if not sign:
            continue
        traits |= sign & _DIRECT
        if sign & _WITH_OTHERS:
            if external or sign & _PAST_EXTERNAL:
                traits |= (sign & _AFTER_EXTERNAL) << _EXTERNAL_AT
            if secret or sign & _PAST_SECRET:
                traits |= (sign & _AFTER_SECRET) << _SECRET_AT
            often.append(sign)
        external |= sign & _EXTERNAL
        secret |= sign & _SECRET
    return traits | _repeated(often) if len(often) >= _REPEATED else traits


def _repeated(signs: Sequence[int]) -> int:
    return sum(kind << _REPEATED_AT for kind in _REPEATABLE if sum([1 for sign in signs if sign & kind]) >= _REPEATED)


def places_of(bit: int, signs: Sequence[int]) -> tuple[int, ...]:
    """Return at which places of a window the intents stand that show a trait."""
    for at in (_REPEATED_AT, _SECRET_AT, _EXTERNAL_AT, 0):
        sign = bit >> at
        if sign:
            shown = sign & 0xFFFF
            return tuple([place for place, other in enumerate(signs) if other & shown])
    return ()
