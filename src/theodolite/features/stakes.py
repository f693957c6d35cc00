"""Five numbers about a call, each with a reason: what the score of a hijack is made of.

Whether the call is better explained by untrusted text than by the goal is the heart of it (`margin`). The rest says how
much that matters: what the call can do, whether the user asked to be led by a text, and whom its arguments bind.
"""

from __future__ import annotations

from msgspec import Struct

from theodolite.core.intent import Call, Origin, Role
from theodolite.features.margin import fetches

__all__ = ("Stakes", "stakes")


class Stakes(Struct, frozen=True, kw_only=True, gc=False):
    """What one call shows; the comments say why each number is there. A margin is its `lead`, in [-1, 1]."""

    # The margin of a call that acts: it changes something, or it reads a page that only untrusted text names and the
    # goal does not call for, since to ask for a page tells its server what is asked.
    acting_margin: float
    # The margin of any other call: to read on after reading is ordinary, and yet a read can begin a hijack.
    reading_margin: float
    # The margin, above 0, under a goal that hands the work to a list or a text: what that asks for is then asked for.
    delegated_margin: float
    # A link that only untrusted text names, inside a content, where the goal speaks of no page: whoever reads the
    # content is led there.
    carried_link: float
    # A credential or a command out of untrusted text: whoever wrote it then acts in the user's name.
    authority: float


_AUTHORITY = frozenset({Role.CREDENTIAL, Role.COMMAND})


def stakes(call: Call) -> Stakes | None:
    """Return what a call shows; None where its margin, origins or grounds were not folded. O(arguments)."""
    if call.margin is None or call.origins is None or call.grounds is None:
        return None
    foreign = [origin for origin in call.origins if origin.origin is Origin.TOOL_RESULT]
    effect = not fetches(call.intent)
    acts = effect or call.grounds.beyond
    lead = call.margin.lead
    return Stakes(
        acting_margin=lead if acts else 0.0,
        reading_margin=0.0 if acts else lead,
        delegated_margin=max(0.0, lead) if call.grounds.delegated else 0.0,
        carried_link=float(effect and not call.grounds.pages and any(origin.within for origin in foreign)),
        authority=float(effect and any(origin.role in _AUTHORITY for origin in foreign)),
    )
