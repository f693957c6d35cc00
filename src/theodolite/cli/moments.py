"""Times as a person writes them on a command line."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from theodolite.core.errors import ConfigError

__all__ = ("first_moment", "last_moment")

_DATE = len("2026-01-31")
_DAY = 86_400.0  # seconds, as UTC counts them: POSIX time has no leap seconds


def first_moment(text: str) -> float:
    """Return a time in seconds since the epoch; of a date alone its first moment. UTC, unless it names its offset.

    Raises ConfigError for what is no time of ISO 8601.

    >>> first_moment("1970-01-02"), first_moment("1970-01-01T01:00+01:00")
    (86400.0, 0.0)
    """
    return _read(text).timestamp()


def last_moment(text: str) -> float:
    """Return a time like `first_moment`; of a date alone its last moment.

    >>> 86399.999 < last_moment("1970-01-01") < 86400.0
    True
    """
    moment = _read(text).timestamp()
    return moment if len(text) > _DATE else math.nextafter(moment + _DAY, -math.inf)


def _read(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
        moment = found if found.tzinfo else found.replace(tzinfo=UTC)
        moment.timestamp()
    except (ValueError, OverflowError):
        raise ConfigError(f"{text!r} is no time: give a date such as 2026-01-31, or 2026-01-31T18:30+01:00") from None
    return moment
