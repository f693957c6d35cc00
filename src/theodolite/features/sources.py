"""Who can write what a tool returns: anyone, or only the operator and the user."""

from __future__ import annotations

from functools import lru_cache

from theodolite.core.intent import Operator, ToolRule
from theodolite.features.intents import words

__all__ = ("of_the_user", "owned", "searches_the_web")

# What a system says of itself or of the account that it serves. Anything else may hold what others wrote: mail, pages,
# shared files, reviews, names of channels; also a list of payments, whose payers choose the subject.
_OWN = frozenset({"balance", "balances", "iban", "whoami", "quota", "clock", "timezone"})
_DATES = frozenset({"time", "date", "now"})
_PROFILE = frozenset({"info", "information", "profile", "details"})
_SELF = frozenset({"user", "my", "own", "me", "current", "self"})
_ONLY = frozenset(
    {"get", "current", "time", "date", "day", "now", "today", "my", "own", "account", "user", "check", "read"}
)


def owned(tool: str, operator: Operator, *, bare: bool = False) -> bool:
    """Whether nobody but the operator and the user can write what a tool returns; a guess from its name where unsaid.

    The operator says so with `outside = false` in the tool's rule. A tool without a name is anyone's. `bare`: the
    session has called it without arguments only, so that a user's profile is this user's and not one that it asked for.

    >>> owned("get_balance", {}), owned("get_inbox", {}), owned("contacts", {"contacts": ToolRule(outside=False)})
    (True, False, True)
    """
    rule = operator.get(tool)
    if isinstance(rule, ToolRule) and rule.outside is not None:
        return not rule.outside
    return _guess(tool) or (bare and of_the_user(tool))


@lru_cache(maxsize=4096)
def _guess(tool: str) -> bool:
    spoken = frozenset(words(tool))
    # A day by itself is an agenda, which others write in; the current one is a date.
    own = bool(spoken & _OWN) or bool(spoken & _DATES) or {"current", "day"} <= spoken
    return own and spoken <= _OWN | _ONLY


@lru_cache(maxsize=4096)
def of_the_user(tool: str) -> bool:
    """Whether a tool's name says that it returns a user's profile.

    >>> of_the_user("get_user_information"), of_the_user("get_my_profile"), of_the_user("get_user_reviews")
    (True, True, False)
    """
    spoken = frozenset(words(tool))
    return bool(spoken & _PROFILE) and bool(spoken & _SELF) and spoken <= _PROFILE | _SELF | _ONLY


_ENGINES = frozenset({"web", "internet", "google", "bing", "brave", "duckduckgo", "tavily", "serp", "serpapi", "searx"})


@lru_cache(maxsize=4096)
def searches_the_web(tool: str) -> bool:
    """Whether a tool's name says that it asks a search engine: to open what that lists is what it was asked for.

    >>> searches_the_web("web_search"), searches_the_web("search_emails")
    (True, False)
    """
    spoken = frozenset(words(tool))
    return "websearch" in spoken or ("search" in spoken and not spoken.isdisjoint(_ENGINES))
