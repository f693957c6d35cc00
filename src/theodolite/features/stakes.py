"""A few numbers about a call, each with a reason: what the score of a hijack is made of.

Whether the call is better explained by untrusted text than by the goal is the heart of it (`margin`). The rest says how
much that matters: what the call can do, whether the user asked to be led by a text or a record, and whom its arguments
bind.
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
    # The margin, above 0, of such a call where the goal may have referred the agent to the passage that explains it.
    referred_margin: float
    # A link that only untrusted text names, inside a content, where the goal speaks of no page: whoever reads the
    # content is led there.
    carried_link: float
    # A credential or a command out of untrusted text: whoever wrote it then acts in the user's name.
    authority: float


# To look a member up in its enum takes Python 3.11 four times as long as a name of the module: what each call asks for.
_FOREIGN = Origin.TOOL_RESULT
_AUTHORITY = frozenset({Role.CREDENTIAL, Role.COMMAND})


def stakes(call: Call) -> Stakes | None:
    """Return what a call shows; None where its margin, origins or grounds were not folded. O(arguments)."""
    if call.margin is None or call.origins is None or call.grounds is None:
        return None
    effect = not fetches(call.intent)
    acts = effect or call.grounds.beyond
    lead = call.margin.lead
    carried = authority = False
    if effect:
        for origin in call.origins:
            if origin.origin is _FOREIGN:
                carried = carried or origin.within
                authority = authority or origin.role in _AUTHORITY
    return Stakes(
        acting_margin=lead if acts else 0.0,
        reading_margin=0.0 if acts else lead,
        delegated_margin=max(0.0, lead) if call.grounds.delegated else 0.0,
        referred_margin=max(0.0, lead) if acts and call.grounds.referred else 0.0,
        carried_link=float(carried and not call.grounds.pages),
        authority=float(authority),
    )
