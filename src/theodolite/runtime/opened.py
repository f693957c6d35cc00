"""What a session has open, as values: inquiries that nobody has driven yet."""

from __future__ import annotations

from collections.abc import Mapping

from theodolite.core.detector import Asker
from theodolite.core.inquiry import Inquiry
from theodolite.runtime.saved import decoded
from theodolite.runtime.session import Session

__all__ = ("opened",)


def opened(session: Session, askers: Mapping[str, Asker]) -> tuple[Inquiry, ...]:
    """Return copies of the open inquiries of a session, in their order, whose askers are there.

    They are read as they would be saved: nothing of the session changes. Linear in all that the session holds.
    """
    inquiries, _ = decoded(session.save()).open(askers)
    return tuple(inquiries)
