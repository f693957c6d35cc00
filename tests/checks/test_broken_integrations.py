"""Each law of integrations catches an integration that breaks it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from theodolite.core.errors import CallBlocked, HarnessError
from theodolite.core.event import AnyHostEvent, Channel, ProbeRequested, ToolCallProposed
from theodolite.core.integration import Claims
from theodolite.core.policy import Decision
from theodolite.testing.checks.integration import CHECKS, IntegrationFixture, Observe, Rig, check_integration
from theodolite.testing.checks.law import name_of
from theodolite.testing.fakes import FakeHost, FakeIntegration


class Claimless(FakeIntegration):
    def coverage(self) -> Claims:
        return replace(super().coverage(), sees=frozenset())


class Overclaiming(FakeIntegration):
    def coverage(self) -> Claims:
        claims = super().coverage()
        return replace(claims, sees=claims.sees | {Channel.REASONING})

    def plant(self, channel: Channel, token: str) -> None:
        if channel is not Channel.REASONING:
            super().plant(channel, token)


class Scattering(FakeIntegration):
    def plant(self, channel: Channel, token: str) -> None:
        super().plant(channel, token)
        super().plant(Channel.USER_TEXT, token)


class Careless(FakeIntegration):
    def plant(self, channel: Channel, token: str) -> None:
        try:
            super().plant(channel, token)
        except HarnessError as error:
            raise KeyError(channel) from error


class Deaf(FakeIntegration):
    """Carries out nothing."""

    def enforce(self, decision: Decision) -> None:
        del decision


class Nervous(FakeIntegration):
    """Stops every call."""

    def enforce(self, decision: Decision) -> None:
        raise CallBlocked(decision)


class Reluctant(FakeIntegration):
    """Stops a call by an error of its own."""

    def enforce(self, decision: Decision) -> None:
        if not decision.allowed:
            raise RuntimeError("no")


class Vague(FakeIntegration):
    """Refuses with another decision than the one it was given."""

    def enforce(self, decision: Decision) -> None:
        if not decision.allowed:
            raise CallBlocked(replace(decision, about=99))


Change = Callable[[FakeHost, AnyHostEvent], AnyHostEvent]


def _on(made: Callable[[FakeHost, Observe], FakeIntegration], change: Change | None = None) -> IntegrationFixture:
    def factory(observe: Observe) -> Rig:
        host = FakeHost()

        def observed(event: AnyHostEvent) -> Decision:
            return observe(event if change is None else change(host, event))

        integration = made(host, observed)
        return Rig(integration=integration, run=integration.run, ran=lambda: len(host.ran), scribble=host.scribble)

    return IntegrationFixture(factory=factory)


def _unnamed(host: FakeHost, event: AnyHostEvent) -> AnyHostEvent:
    del host
    return replace(event, channel=Channel.UNKNOWN)


def _forged(host: FakeHost, event: AnyHostEvent) -> AnyHostEvent:
    del host, event
    return ProbeRequested(reason="?", channel=Channel.CONTROL)  # type: ignore[return-value]  # pyright: ignore[reportReturnType] - its fault


def _looking_into_the_host(host: FakeHost, event: AnyHostEvent) -> AnyHostEvent:
    """Keep the arguments as a view of a buffer that the host uses again."""
    if isinstance(event, ToolCallProposed):
        buffer = BUFFERS.setdefault(id(host), bytearray(b'{"to":"ES-77"}'))
        msgspec.structs.force_setattr(event, "arguments", Raw(memoryview(buffer)))
    return event


BUFFERS: dict[int, bytearray] = {}


class Buffered(FakeHost):
    def scribble(self) -> None:
        super().scribble()
        BUFFERS[id(self)][:] = b'{"to":"XX-00"}'


def _buffered() -> IntegrationFixture:
    def factory(observe: Observe) -> Rig:
        host = Buffered()
        integration = FakeIntegration(host, lambda event: observe(_looking_into_the_host(host, event)))
        return Rig(integration=integration, run=integration.run, ran=lambda: len(host.ran), scribble=host.scribble)

    return IntegrationFixture(factory=factory)


def _mute() -> IntegrationFixture:
    def factory(observe: Observe) -> Rig:
        host = FakeHost()
        integration = FakeIntegration(host, observe)
        return Rig(integration=integration, run=lambda: None, ran=lambda: 0, scribble=host.scribble)

    return IntegrationFixture(factory=factory)


MUTANTS: dict[str, dict[str, IntegrationFixture]] = {
    "well_formed": {"sees nothing": _on(Claimless)},
    "emits": {
        "no channel": _on(FakeIntegration, _unnamed),
        "own events": _on(FakeIntegration, _forged),
        "nothing": _mute(),
    },
    "shows_what_it_claims": {"claims too much": _on(Overclaiming)},
    "plants_in_one_place": {"plants in two": _on(Scattering)},
    "says_where_it_cannot_plant": {"another error": _on(Careless)},
    "allows": {"stops everything": _on(Nervous)},
    "refuses": {"stops nothing": _on(Deaf), "another error": _on(Reluctant), "another decision": _on(Vague)},
    "copies": {"looks into the host": _buffered()},
}
CASES = [(law, how) for law, mutants in MUTANTS.items() for how in mutants]


@pytest.mark.parametrize(("law", "how"), CASES, ids=[f"{law}: {how}" for law, how in CASES])
def test_a_law_catches_who_breaks_it(law: str, how: str) -> None:
    (check,) = [check for check in CHECKS if name_of(check) == law]
    with pytest.raises(AssertionError, match=f"breaks the law '{law}'.*To see it again: "):
        check(MUTANTS[law][how])


def test_no_law_is_without_its_mutant() -> None:
    assert list(MUTANTS) == [name_of(check) for check in CHECKS]


def test_who_breaks_nothing_passes() -> None:
    check_integration(_on(FakeIntegration).factory)


def test_who_cannot_stop_calls_need_not_refuse_them() -> None:
    class Watching(Deaf):
        def coverage(self) -> Claims:
            return replace(super().coverage(), stops_calls=False)

    check_integration(_on(Watching).factory)
