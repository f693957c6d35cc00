"""Calls of one session as intents, in order: what is known of its tools, and what it has read before.

Of a call is asked, in this order: the operator's map, the host's annotations (the MCP hints), the words of the tool's
name, and what its arguments reach. The effect is never taken from arguments: what a command looks like is no proof that
it only reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from msgspec import UNSET, Struct

from theodolite.core.event import Tool, ToolCallProposed, ToolResultObserved
from theodolite.core.intent import (
    DataFlow,
    DestinationKind,
    Effect,
    NormalizedIntent,
    Operation,
    Operator,
    Permission,
    Provenance,
    TargetKind,
    ToolRule,
)
from theodolite.features.intents.arguments import read_arguments
from theodolite.features.intents.domains import named_domains
from theodolite.features.intents.names import Form, Named, named
from theodolite.features.intents.places import Places
from theodolite.features.intents.reach import Reach

__all__ = ("IntentFold",)

# Bounds on memory: what one session names or makes beyond these is forgotten, the oldest first.
_DOMAINS = 64
_NAMES = 256
_NAME = 64
_HEARD = 8_192

_NOBODY = ToolRule()
# To look a member up in its enum takes Python 3.11 four times as long as a name of the module: what each call asks for.
_SHELL, _CODE, _EDITOR, _SEND = Form.SHELL, Form.CODE, Form.EDITOR, Form.SEND
_WRITES, _READS, _ASKS = Operation.FILE_WRITE, Permission.READ, Permission.NETWORK
_SECRET, _UNREACHED, _WORKDIR = TargetKind.SECRET, TargetKind.UNKNOWN, TargetKind.WORKDIR


class IntentFold(Struct, kw_only=True):
    """What is known of a session's tools, and whether it has read anything from outside, or a secret.

    State of one session, bounded; saved and restored with it. Cost: linear in the arguments of a call, some 10 µs for
    an ordinary one. The two flags are sticky: nothing takes them back.
    """

    declared: dict[str, Effect] = {}
    closed: dict[str, bool] = {}
    own: dict[str, bool] = {}
    fetched: dict[str, bool] = {}
    made: dict[str, bool] = {}
    after_external_read: bool = False
    after_secret_access: bool = False

    def declare(self, tools: tuple[Tool, ...]) -> None:
        """Take the annotations of the tools on offer, in place of earlier ones."""
        self.declared = {tool.name: effect for tool in tools if (effect := _annotated(tool)) is not None}
        # What MCP says of an open world: whether the tool talks to what others may write (openWorldHint).
        self.closed = {tool.name: not tool.open_world for tool in tools if tool.open_world is not None}

    def heard(self, text: str) -> None:
        """Note the domains that the user names: what goes there goes where the user pointed."""
        if "." in text:
            for domain in islice(named_domains(text[:_HEARD]), _DOMAINS):
                _remember(self.own, domain, _DOMAINS)

    def saw_outside(self) -> None:
        """Note that text from outside has entered the context."""
        self.after_external_read = True

    def returned(self, result: ToolResultObserved, operator: Operator) -> None:
        """Take an untrusted result: unless its tool only shows what is on this machine, it is text from outside."""
        if self.after_external_read:
            return
        rule = _rule(operator, result.tool)
        local = self.closed.get(result.tool, named(result.tool).local)
        self.after_external_read = rule.outside if rule.outside is not None else not local

    def of(
        self, call: ToolCallProposed, operator: Operator, given: Mapping[str, object] | None = None
    ) -> NormalizedIntent:
        """Return what a proposed call is, and remember it; `operator` is the operator's map of tool names.

        `given` are the decoded arguments, where the caller has them. Calls are to be given in their order.
        """
        if given is None:
            values = call.values()
            given = {} if values is UNSET else values
        known, rule = named(call.tool), _rule(operator, call.tool)
        places = Places(self.own, self.fetched, self.made)
        reach = places.reach
        if known.form is _EDITOR and given.get("command") == "view":
            known = known._replace(operation=Operation.FILE_READ)
        reach.does(known.operation)
        if given:
            read_arguments(given, known, places)
        _complete(reach, known)
        intent = self._intent(call, known, rule, reach)
        self._remember(intent, rule, places)
        return intent

    def _intent(self, call: ToolCallProposed, known: Named, rule: ToolRule, reach: Reach) -> NormalizedIntent:
        permission, effect = known.permission, rule.effect or self.declared.get(call.tool)
        if permission is _READS and effect is Effect.WRITE:
            permission = Permission.WRITE
        if known.form is _SHELL and reach.operation is Operation.NETWORK_REQUEST:
            permission = Permission.NETWORK
        if rule is not _NOBODY:
            _said(reach, rule)
        operation, target = rule.operation or reach.operation, reach.target
        secret = reach.secret or (rule.target is _SECRET and operation is not _WRITES)
        if target is _SECRET and not secret and operation is not _WRITES:
            target = _WORKDIR  # a secret was only written, and something else was done besides
        return NormalizedIntent(
            tool=call.tool,
            operation=operation,
            target_kind=target,
            destination_kind=reach.destination,
            provenance=rule.provenance or reach.provenance(after_external=self.after_external_read),
            reads_secret_like_data=secret,
            writes_outside_workdir=reach.outside,
            executes_generated_code=reach.executes,
            after_external_read=self.after_external_read,
            after_secret_access=self.after_secret_access,
            data_flow=reach.flow,
            permission=permission,
            effect=effect or known.effect,
        )

    def _remember(self, intent: NormalizedIntent, rule: ToolRule, places: Places) -> None:
        if intent.reads_secret_like_data:
            self.after_secret_access = True
        if not self.after_external_read and rule.outside is not False:
            self.after_external_read = rule.provenance is Provenance.EXTERNAL_WEB or places.reach.from_outside
        for name in places.reach.downloads:
            _remember(self.fetched, name[:_NAME], _NAMES)
        for name in places.written:
            _remember(self.made, name[:_NAME], _NAMES)


def _complete(reach: Reach, known: Named) -> None:
    """Add what the name alone says, where the arguments do not."""
    if known.form is _CODE:
        reach.executes = True
        reach.flows(DataFlow.LOCAL_TO_LOCAL)
    if known.secret:
        reach.secret = True
        reach.touches(_SECRET)
    if known.permission is _ASKS and (reach.target is _UNREACHED or reach.target is _WORKDIR):
        reach.touches(TargetKind.EXTERNAL_URL)
        reach.sends(DestinationKind.UNKNOWN)
        reach.strange = True
    if known.form is _SEND and known.operation is Operation.NETWORK_REQUEST:
        reach.sends(DestinationKind.NONE, DataFlow.LOCAL_TO_EXTERNAL)
    if known.operation is _WRITES:
        reach.flows(DataFlow.LOCAL_TO_LOCAL)
    if reach.target is _UNREACHED and known.local:
        reach.touches(_WORKDIR)


def _said(reach: Reach, rule: ToolRule) -> None:
    """Add what the operator says of the tool."""
    if rule.target is not None:
        reach.touches(rule.target)
    if rule.destination is not None or rule.flow is not None:
        reach.sends(rule.destination or DestinationKind.NONE, rule.flow or DataFlow.NONE)
    if rule.secret:
        reach.secret = True


def _annotated(tool: Tool) -> Effect | None:
    if tool.read_only is not None:
        return Effect.READ if tool.read_only and not tool.destructive else Effect.WRITE
    return Effect.WRITE if tool.destructive else None


def _rule(operator: Operator, tool: str) -> ToolRule:
    said = operator.get(tool)
    if isinstance(said, Effect):
        return ToolRule(effect=said)
    return said or _NOBODY


def _remember(names: dict[str, bool], name: str, most: int) -> None:
    names.pop(name, None)
    names[name] = True
    if len(names) > most:
        del names[next(iter(names))]
