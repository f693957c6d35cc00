from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import pytest

from theodolite.core.budget import Budget, Limit

any_limit: Callable[..., Limit] = Limit


@pytest.mark.parametrize("name", ["calls", "tokens", "cost"])
@pytest.mark.parametrize("value", [-1, -0.5, math.nan, math.inf, "3", [1]])
def test_a_limit_that_is_no_number_from_0_on_is_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"a limit of .* {name} is none: give a number, 0 or more"):
        any_limit(**{name: value})


@pytest.mark.parametrize("value", [0, 1, 10**400])
def test_a_limit_may_be_0_and_as_large_as_one_likes(value: int) -> None:
    assert Limit(calls=value).calls == value


def test_nothing_is_limited_by_default() -> None:
    for limit in (Budget().session, Budget().fleet, Budget().day):
        assert (limit.calls, limit.tokens, limit.cost) == (None, None, None)


@pytest.mark.parametrize("junk", [b'{"session":{"cals":3}}', b'{"hour":{}}', b'{"day":{"calls":-1}}'])
def test_a_key_or_a_number_that_is_none_is_refused_where_it_is_read(junk: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(junk, type=Budget)
