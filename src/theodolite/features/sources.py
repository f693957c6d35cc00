"""Who can write what a tool returns: anyone, or only the operator and the user."""

from __future__ import annotations

from functools import lru_cache

from theodolite.core.intent import Operator, ToolRule
from theodolite.features.intents import words

__all__ = ("owned",)

# What a system says of itself or of the account that it serves. Anything else may hold what others wrote: mail, pages,
# shared files, reviews, names of channels; also a list of payments, whose payers choose the subject.
_OWN = frozenset({"balance", "balances", "iban", "whoami", "quota", "clock", "timezone"})
_ONLY = frozenset(
    {"get", "current", "time", "date", "day", "now", "today", "my", "own", "account", "user", "check", "read"}
)


def owned(tool: str, operator: Operator) -> bool:
    """Whether nobody but the operator and the user can write what a tool returns; a guess from its name where unsaid.

    The operator says so with `outside = false` in the tool's rule. A tool without a name is anyone's.

    >>> owned("get_balance", {}), owned("get_inbox", {}), owned("contacts", {"contacts": ToolRule(outside=False)})
    (True, False, True)
    """
    rule = operator.get(tool)
    if isinstance(rule, ToolRule) and rule.outside is not None:
        return not rule.outside
    return _guess(tool)


@lru_cache(maxsize=4096)
def _guess(tool: str) -> bool:
    spoken = frozenset(words(tool))
    own = bool(spoken & _OWN) or bool(spoken & {"time", "date", "day", "now", "today"})
    return own and spoken <= _OWN | _ONLY
