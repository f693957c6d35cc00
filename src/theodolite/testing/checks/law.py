"""How a suite runs, and how a broken law is told."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Protocol, TypeVar

from theodolite.core.errors import ConfigError

__all__ = ("Check", "broken", "name_of", "run", "selected", "unraised")

F = TypeVar("F")
F_contra = TypeVar("F_contra", contravariant=True)

_PREFIX = "check_"


class Check(Protocol[F_contra]):
    """One law as a function of what is under test. Raises AssertionError where the law is broken."""

    @property
    def __name__(self) -> str:
        """Return `check_` and the name of the law."""
        ...

    def __call__(self, fixture: F_contra, /) -> None:
        """Return when the law holds."""
        ...


def name_of(check: Check[F]) -> str:
    """Return the name of the law that a check states.

    >>> def check_total(fixture: object) -> None: ...
    >>> name_of(check_total)
    'total'
    """
    return check.__name__.removeprefix(_PREFIX)


def selected(checks: Iterable[Check[F]], skips: Mapping[str, str]) -> tuple[Check[F], ...]:
    """Return the checks that are not skipped. Raises ConfigError for an unknown law or a skip without a reason."""
    named = {name_of(check): check for check in checks}
    for law, reason in skips.items():
        if law not in named:
            raise ConfigError(f"there is no law {law!r} to skip; the laws here are {', '.join(named)}")
        if not reason.strip():
            raise ConfigError(f"the skip of the law {law!r} has no reason: say why it cannot hold")
    return tuple([check for law, check in named.items() if law not in skips])


def run(checks: Iterable[Check[F]], fixture: F, skips: Mapping[str, str]) -> None:
    """Run every check that is not skipped, in order; the first broken law ends it."""
    for check in selected(checks, skips):
        check(fixture)


def broken(law: str, of: object, what: str, *, reproduce: str) -> AssertionError:
    """Return the error that says that a law is broken.

    `of` is the implementation, `what` the fault as seen, `reproduce` what a person does to see it again.
    """
    made = of if isinstance(of, type) else type(of)
    return AssertionError(
        f"{made.__module__}.{made.__qualname__} breaks the law {law!r}: {what}. To see it again: {reproduce}."
    )


@contextmanager
def unraised(law: str, of: object, *, reproduce: str) -> Generator[None, None, None]:
    """Turn anything that is raised inside into a broken law."""
    try:
        yield
    except AssertionError:
        raise
    except Exception as error:
        fault = f"it raised {type(error).__name__}: {error}"
        raise broken(law, of, fault, reproduce=reproduce) from error
