"""The detector: each proposed call against the contract of its tool, before it runs, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec
from msgspec import UNSET, Raw, Struct

from theodolite.contracts import read
from theodolite.core.arguments import Foreign
from theodolite.core.calibration import Band
from theodolite.core.contract import Contract, Contracts, Divergence, Kind, Location
from theodolite.core.detector import Feature
from theodolite.core.errors import ConfigError
from theodolite.core.event import Event, ToolCallProposed, ToolResultObserved, ToolsDeclared, TurnEnded
from theodolite.core.reading import Cause, Evidence, Fact, Failure, Reading, Status
from theodolite.core.window import Window
from theodolite.detectors.payload.engine import Checker

__all__ = ("RESULT", "SHAPE", "PayloadDetector", "PayloadSettings", "PayloadState")

SHAPE = "payload.shape"
RESULT = "payload.result"
# Findings that evidence lists (our choice): it is read by a person, and `findings` says how many there are.
_LISTED = 16
# What a session's declaration may hold: characters of schemas, and tools (our choice: it bounds a session's memory).
_ROOM, _TOOLS = 4_000_000, 4_096
# Schemas whose validators are kept, for all sessions together (our choice).
_KEPT = 256
# Results that are longer are not read as JSON (our choice): an answer of that size is a document, and not what a
# function returns.
_LONGEST = 1_000_000


class PayloadSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[detectors.payload]`: whether formats deny, and whether what a contract does not declare is told.

    `contracts` names files with contracts, which whoever wires the detector reads and gives to it; a detector that is
    not given them is refused.
    """

    enabled: bool = True
    formats: bool = False
    observe: bool = True
    contracts: tuple[str, ...] = ()


class PayloadState(Struct, kw_only=True):
    """The tools on offer, with the JSON of their schemas, empty where none was shown; `full` where there were too many.

    `results` has the schemas of what tools return, where one was shown. `declared` says that a declaration was seen.
    Bounded: 4,096 tools and 4 million characters.
    """

    tools: dict[str, str] = {}
    results: dict[str, str] = {}
    declared: bool = False
    full: bool = False


class PayloadDetector:
    """Says whether a call fits the contract of its tool, exactly: 1.0 where it does not, 0.0 where it does.

    `contracts` are those that the operator gives (an OpenAPI document, a list of tools); without one for a tool, the
    schema counts that the session's own declaration shows. A tool without either is not judged. A call of a tool that
    is in neither, where there is one of them, is `unknown_operation`. Arguments that are text without JSON are
    `not_json` where the event says so in `foreign`; those that it does not show are no evidence. `payload.result` is
    the same for what a tool returned, where it reported no failure, a schema of its results is in the contracts or in
    the declaration, and it is JSON; it does not act, since what the agent did is done, and servers are seldom exact.

    Evidence has the kind, the JSON Pointer and the types, never a value of the call. What does not deny stands after
    what does, as `payload.undeclared_field` and the like.

    State: the declared schemas. Cost: `Checker.check`, and `Checker.observe` after it; a schema is compiled at the
    first call of its tool, in a few ms, and kept, for 256 of them over all sessions.
    """

    name = "payload"
    version = "1"
    # TurnEnded too: a turn without calls was seen, and there was nothing to judge in it.
    reads: frozenset[type[Event]] = frozenset({ToolsDeclared, ToolCallProposed, ToolResultObserved, TurnEnded})
    needs: frozenset[Feature] = frozenset()
    settings = PayloadSettings
    bands: Mapping[str, Band] = {
        SHAPE: Band(alert=1.0, status=Status.EXACT, source="the published contract: nothing was fitted"),
        RESULT: Band(
            alert=1.0,
            status=Status.EXACT,
            acts=False,
            finds=False,
            source="the published contract: nothing was fitted",
        ),
    }

    def __init__(self, settings: PayloadSettings | None = None, *, contracts: Contracts | None = None) -> None:
        self._settings = settings or PayloadSettings()
        if self._settings.contracts and contracts is None:
            raise ConfigError("contracts of the settings are names of files: give what was read of them as `contracts`")
        self._own = None if contracts is None else Checker(contracts, formats=self._settings.formats)
        # What is kept here changes no answer, only when it comes.
        self._of = lru_cache(maxsize=_KEPT)(self._made)

    @property
    def contracts(self) -> Contracts | None:
        """Return those that the operator gave."""
        return None if self._own is None else self._own.contracts

    def begin(self) -> PayloadState:
        """Return the state of a session that declared no tools."""
        return PayloadState()

    def update(self, state: PayloadState, event: Event, window: Window) -> tuple[Reading | Failure, ...]:
        """Take the tools on offer; judge a call, or a result."""
        del window
        if isinstance(event, ToolsDeclared):
            return self._declare(state, event)
        if isinstance(event, ToolCallProposed):
            return self._call(state, event)
        return self._result(state, event) if isinstance(event, ToolResultObserved) else ()

    def _declare(self, state: PayloadState, event: ToolsDeclared) -> tuple[Failure, ...]:
        texts = {tool.name: _text(tool.parameters) for tool in event.tools[:_TOOLS]}
        results = {tool.name: _text(tool.results) for tool in event.tools[:_TOOLS] if tool.results is not UNSET}
        state.full = len(event.tools) > _TOOLS or sum(map(len, (*texts.values(), *results.values()))) > _ROOM
        state.tools, state.results = ({}, {}) if state.full else (texts, results)
        state.declared = True
        return (self._blind("more tools were declared than are kept: none of them is checked"),) if state.full else ()

    def divergences(self, state: PayloadState, call: ToolCallProposed) -> tuple[Divergence, ...] | Failure | None:
        """Return where a call diverges from the contract of its tool; None where there is none to hold it against.

        A Failure where nobody can say. It is what `update` tells of a call, uncut.
        """
        checker = self._checker(state, call.tool)
        if isinstance(checker, Failure):
            return checker
        if checker is None:
            known = call.tool in state.tools or state.full or not (state.declared or self._own)
            return None if known or self._published(call.tool) is not None else (_unknown(),)
        arguments = call.values()
        if arguments is UNSET and not call.foreign:
            return self._blind("the channel did not show the arguments of the call")
        if arguments is UNSET and not _takes_object(checker, call.tool):
            return self._blind("the arguments of the call are no JSON, and its contract may take text")
        if call.foreign:
            return tuple(map(_foreign, call.foreign))
        found = checker.check(call.tool, arguments)
        if self._settings.observe:
            found += tuple([one for one in checker.observe(call.tool, arguments) if one not in found])
        return found

    def held(self, state: PayloadState, tool: str) -> Contracts | None:
        """Return the contracts that a call of a tool is held against: those of the operator, or the session's own."""
        checker = self._checker(state, tool)
        return checker.contracts if isinstance(checker, Checker) else None

    def _call(self, state: PayloadState, event: ToolCallProposed) -> tuple[Reading | Failure, ...]:
        found = self.divergences(state, event)
        if found is None:
            return ()
        return (found if isinstance(found, Failure) else self._reading(SHAPE, event, found),)

    def _result(self, state: PayloadState, event: ToolResultObserved) -> tuple[Reading | Failure, ...]:
        if event.error or event.text is UNSET:
            return ()
        checker = self._result_checker(state, event.tool)
        if checker is None or isinstance(checker, Failure):
            return () if checker is None else (checker,)
        try:
            value: object = msgspec.json.decode(event.text) if len(event.text) <= _LONGEST else UNSET
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            value = UNSET
        return () if value is UNSET else (self._reading(RESULT, event, checker.check_result(event.tool, value)),)

    def _result_checker(self, state: PayloadState, tool: str) -> Checker | Failure | None:
        """Return what checks the results of a tool: the operator's contract of it goes first, also without any."""
        contract = self._published(tool)
        if contract is not None:
            return self._own if contract.results else None
        text = state.results.get(tool, "")
        return self._of(tool, "{}", text) if text else None

    def _checker(self, state: PayloadState, tool: str) -> Checker | Failure | None:
        """Return what checks the calls of a tool, a Failure where its schema is none, or None without a schema."""
        contract = self._published(tool)
        if contract is not None and not contract.opaque:
            return self._own
        text = state.tools.get(tool, "")
        return self._of(tool, text, "null") if text else None

    def _published(self, tool: str) -> Contract | None:
        """Return the operator's contract of a tool."""
        return self._own.contracts.find(tool) if self._own is not None else None

    def _made(self, tool: str, arguments: str, results: str) -> Checker | Failure:
        try:
            schemas: dict[str, object] = {
                "inputSchema": msgspec.json.decode(arguments),
                "outputSchema": msgspec.json.decode(results),
            }
            return Checker(read([{"name": tool, **schemas}]), formats=self._settings.formats)
        except ConfigError as error:
            detail = f"the declared schema of a tool cannot be checked: {error}"
            return Failure(detector=self.name, version=self.version, cause=Cause.MALFORMED, detail=detail)

    def _blind(self, detail: str) -> Failure:
        return Failure(detector=self.name, version=self.version, cause=Cause.NO_EVIDENCE, detail=detail)

    def _reading(self, code: str, event: Event, found: tuple[Divergence, ...]) -> Reading:
        denying = sum(one.denies for one in found)
        listed = sorted(found, key=lambda one: not one.denies)[:_LISTED]
        return Reading(
            detector=self.name,
            version=self.version,
            code=code,
            score=1.0 if denying else 0.0,
            evidence=tuple([_evidence(one, event.seq) for one in listed]),
            facts=(Fact("findings", float(denying)), Fact("observations", float(len(found) - denying)))
            if found
            else (),
        )


def _text(parameters: object) -> str:
    return bytes(parameters).decode() if isinstance(parameters, Raw) else ""


def _takes_object(checker: Checker, tool: str) -> bool:
    """Whether text is no call of a tool: arguments of tools are objects; an operation may have a body of text."""
    contract = checker.contracts.find(tool)
    whole = contract is not None and any(part.location is Location.ARGUMENTS for part in contract.parts)
    return whole or any(one.denies for one in checker.check(tool, ""))


def _unknown() -> Divergence:
    return Divergence(kind=Kind.UNKNOWN_OPERATION, pointer="", expected="a declared tool", observed="another name")


def _foreign(found: Foreign) -> Divergence:
    if found.type == Kind.NOT_JSON:  # what a reader says of arguments as a whole, and the type of no value
        return Divergence(
            kind=Kind.NOT_JSON, pointer=found.path, expected="a JSON object", observed="text that is no JSON"
        )
    kind = Kind.TOO_DEEP if found.type == "too_deep" else Kind.NOT_JSON
    return Divergence(kind=kind, pointer=found.path, expected="a JSON value", observed=found.type)


def _evidence(found: Divergence, seq: int) -> Evidence:
    return Evidence(
        kind=f"payload.{found.kind}",
        seqs=(seq,),
        path=found.pointer,
        expected=found.expected,
        observed=found.observed,
    )
