"""What the settings say of tools, as far as a reader of the report must know it: it changes what was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from theodolite.reports.escaping import inert
from theodolite.reports.limits import NAME, PARTS

__all__ = ("trusting", "unmet")


def trusting(names: Sequence[str]) -> Iterator[str]:
    """Yield whose results were taken as the user's own, on the word of the settings; nothing where there are none."""
    if names:
        yield f"By the settings only you and the user write what these tools return: {_listed(names)}."


def unmet(names: Sequence[str]) -> Iterator[str]:
    """Yield the names in the settings that no session declares or calls: one of them may be misspelled."""
    if names:
        spelled = "they are" if len(names) > 1 else "it is"
        met = "which no session here declares or calls"
        yield f"[tools] names {_listed(names)}, {met}: check how {spelled} spelled."


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - PARTS:,} more" if len(names) > PARTS else ""
    return f"{', '.join([inert(name, NAME) for name in names[:PARTS]])}{more}"
