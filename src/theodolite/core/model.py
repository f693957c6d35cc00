"""The port to whatever answers queries."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from theodolite.core.inquiry import Query, Reply

__all__ = ("Model",)


class Model(Protocol):
    """Answers queries.

    Laws: `ask` never runs a tool call, answers the query it was given (`reply.query == query`), raises ModelError and
    nothing else when it cannot, may be cancelled at any await, and is safe for `max_concurrency` callers at once.
    """

    @property
    def name(self) -> str:
        """Return the model id that readings and calibrations carry."""
        ...

    @property
    def max_concurrency(self) -> int:
        """Return how many queries may be under way at once."""
        ...

    def ask(self, query: Query) -> Awaitable[Reply]:
        """Answer one query. Raises ModelError."""
        ...
