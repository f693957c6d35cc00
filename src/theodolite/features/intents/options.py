"""The options of a command line: which value stands behind which, and what curl and wget mean by them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from theodolite.features.intents.programs import UPLOADS
from theodolite.features.intents.tables import table

__all__ = ("SAVES", "VALUED", "after", "pairs", "uploads")

# Options of curl and wget: those that name where the answer goes, and those whose value is no address.
SAVES = frozenset({"-o", "-O", "--output", "--output-document"})
VALUED = table(
    """
    -H --header -A --user-agent -e --referer -u --user -b --cookie -c --cookie-jar -x --proxy -m --max-time -w
    --write-out -X --request --method --retry --connect-timeout -P --directory-prefix -U --cert --key --cacert -t -T
    """
)
_ATTACHED = frozenset("dFTXHoAeubcxmw")


def pairs(args: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the values of a command line, each with the option before it, or with the empty text."""
    option = ""
    for arg in args:
        if not arg.startswith("-") or arg == "-":
            yield option, arg
            option = ""
        elif arg.startswith("--") and "=" in arg:
            name, _, value = arg.partition("=")
            yield name, value
        elif len(arg) > 2 and arg[1] != "-" and arg[1] in _ATTACHED:  # noqa: PLR2004 - a dash, a letter, and the value
            yield arg[:2], arg[2:]
        else:
            option = arg


def uploads(args: Sequence[str]) -> bool:
    """Whether the options of curl or wget send something."""
    method = (after(args, "-X", "--request", "--method") or "").upper()
    attached = any(arg.upper().startswith(("-XPOST", "-XPUT", "-XPATCH", "--REQUEST=P", "--METHOD=P")) for arg in args)
    return method in {"POST", "PUT", "PATCH"} or attached or any(arg.startswith(UPLOADS) for arg in args)


def after(args: Sequence[str], *options: str) -> str | None:
    """Return the argument behind the first of some options, or None."""
    for place, arg in enumerate(args[:-1]):
        if arg in options:
            return args[place + 1]
    return None
