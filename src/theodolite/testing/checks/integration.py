"""The laws of integrations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from theodolite.core.errors import CallBlocked, HarnessError
from theodolite.core.event import AnyHostEvent, Channel, Event, HostEvent, ToolCallProposed, decode_event, encode_event
from theodolite.core.integration import Integration
from theodolite.core.policy import Decision
from theodolite.testing.checks.law import broken, run, unraised

__all__ = ("CHECKS", "IntegrationFixture", "Observe", "Rig", "check_integration")

Observe = Callable[[AnyHostEvent], Decision]
"""What an integration tells of its host's events, and is told what to do about."""

_TOKEN = "canary-7d1c40b2"  # noqa: S105 - it is planted to be found


@dataclass(frozen=True, kw_only=True)
class Rig:
    """An integration in its host, ready to run.

    `run` lets the host go through one session with at least one tool call, `ran` tells how many calls have run since,
    `scribble` overwrites every object of the host that the integration was shown.
    """

    integration: Integration
    run: Callable[[], None]
    ran: Callable[[], int]
    scribble: Callable[[], None]


@dataclass(frozen=True, kw_only=True)
class IntegrationFixture:
    """An integration under test: `factory` puts a new one into a new host and connects it to what observes."""

    factory: Callable[[Observe], Rig]


def check_integration(factory: Callable[[Observe], Rig], *, skips: Mapping[str, str] | None = None) -> None:
    """Run every law of integrations on what the factory makes.

    `skips` maps the name of a law to the reason why it cannot hold. Raises AssertionError for a broken law, ConfigError
    for a skip of an unknown law or without a reason.
    """
    run(CHECKS, IntegrationFixture(factory=factory), skips or {})


def check_well_formed(fixture: IntegrationFixture) -> None:
    """Check that it claims to see at least one channel, each by name."""
    watched = _Watched(fixture)
    seen = watched.rig.integration.coverage().sees
    if type(seen) is not frozenset or not seen or Channel.UNKNOWN in seen:
        what = "coverage().sees is not a frozenset of channels, at least one and none unknown"
        raise broken("well_formed", watched.rig.integration, what, reproduce="look at integration.coverage()")


def check_emits(fixture: IntegrationFixture) -> None:
    """Check that what it observes are events that a host may bring, whole, on a named channel."""
    watched = _Watched(fixture).run("emits")
    if not watched.events:
        raise broken("emits", watched.rig.integration, "no event came out", reproduce="let the host run")
    for event in watched.events:
        if not _whole(event) or event.channel is Channel.UNKNOWN:
            what = f"a {type(event).__name__} is no host event, does not survive encoding, or names no channel"
            raise broken("emits", watched.rig.integration, what, reproduce="let the host run")


def check_shows_what_it_claims(fixture: IntegrationFixture) -> None:
    """Check that a token planted on a channel that it claims to see arrives in an event of that channel."""
    for channel in sorted(_claimed(fixture)):
        watched = _Watched(fixture).plant("shows_what_it_claims", channel).run("shows_what_it_claims")
        if channel not in watched.channels_with_token():
            what = f"it claims to see {channel.value}, and a token planted there did not arrive"
            raise broken("shows_what_it_claims", watched.rig.integration, what, reproduce=_planting(channel))


def check_plants_in_one_place(fixture: IntegrationFixture) -> None:
    """Check that a planted token arrives on no other channel, and that nothing arrives that was not planted."""
    for channel in (None, *sorted(_claimed(fixture))):
        watched = _Watched(fixture)
        if channel is not None:
            watched.plant("plants_in_one_place", channel)
        elsewhere = watched.run("plants_in_one_place").channels_with_token() - {channel}
        if elsewhere:
            found = ", ".join(sorted(elsewhere))
            what = f"a token planted on {channel.value if channel else 'no channel'} arrived on {found}"
            raise broken("plants_in_one_place", watched.rig.integration, what, reproduce=_planting(channel))


def check_says_where_it_cannot_plant(fixture: IntegrationFixture) -> None:
    """Check that planting where it cannot raises HarnessError and nothing else."""
    for channel in sorted(frozenset(Channel) - _claimed(fixture)):
        watched = _Watched(fixture)
        try:
            watched.rig.integration.plant(channel, _TOKEN)
        except HarnessError:
            continue
        except Exception as error:
            what = f"planting on {channel.value} raises {type(error).__name__}, not HarnessError"
            how = _planting(channel)
            raise broken("says_where_it_cannot_plant", watched.rig.integration, what, reproduce=how) from error


def check_allows(fixture: IntegrationFixture) -> None:
    """Check that a decision that allows does nothing: every proposed call runs."""
    watched = _Watched(fixture)
    with unraised("allows", watched.rig.integration, reproduce="enforce(Decision(..., allowed=True))"):
        watched.rig.integration.enforce(_decision(allowed=True))
    watched.run("allows")
    if not 0 < watched.calls == watched.rig.ran():
        what = f"{watched.calls} calls were proposed and allowed, {watched.rig.ran()} ran"
        raise broken("allows", watched.rig.integration, what, reproduce="allow every event and let the host run")


def check_refuses(fixture: IntegrationFixture) -> None:
    """Check that a decision that refuses keeps the call from running, if it says that it can stop calls."""
    watched = _Watched(fixture, allowed=False)
    integration = watched.rig.integration
    if not integration.coverage().stops_calls:
        return
    refusal = _decision(allowed=False)
    try:
        integration.enforce(refusal)
    except CallBlocked as blocked:
        if blocked.decision is not refusal:
            what = "CallBlocked carries another decision than the one that refused"
            raise broken("refuses", integration, what, reproduce="enforce(Decision(..., allowed=False))") from blocked
    except Exception as error:
        what = f"it raises {type(error).__name__}, not CallBlocked"
        raise broken("refuses", integration, what, reproduce="enforce(Decision(..., allowed=False))") from error
    watched.run("refuses")
    if not watched.calls or watched.rig.ran():
        what = f"{watched.calls} calls were proposed and refused, {watched.rig.ran()} ran"
        raise broken("refuses", integration, what, reproduce="refuse every call and let the host run")


def check_copies(fixture: IntegrationFixture) -> None:
    """Check that what the host does to its objects afterwards changes no event."""
    watched = _Watched(fixture).run("copies")
    before = [encode_event(event) for event in watched.events]
    watched.rig.scribble()
    changed = [event for event, line in zip(watched.events, before, strict=False) if encode_event(event) != line]
    if changed or len(watched.events) > len(before):
        what = f"a {type(changed[0]).__name__ if changed else 'late event'} still looks into the objects of the host"
        raise broken("copies", watched.rig.integration, what, reproduce="let the host run, then overwrite its objects")


CHECKS: tuple[Callable[[IntegrationFixture], None], ...] = (
    check_well_formed,
    check_emits,
    check_shows_what_it_claims,
    check_plants_in_one_place,
    check_says_where_it_cannot_plant,
    check_allows,
    check_refuses,
    check_copies,
)
"""Every law of integrations."""


class _Watched:
    """A rig with an observer that notes every event and allows, or refuses, every call."""

    def __init__(self, fixture: IntegrationFixture, *, allowed: bool = True) -> None:
        self.events: list[AnyHostEvent] = []
        self._allowed = allowed
        self.rig = fixture.factory(self._observe)

    def _observe(self, event: AnyHostEvent) -> Decision:
        self.events.append(event)
        return _decision(allowed=self._allowed or not isinstance(event, ToolCallProposed))

    @property
    def calls(self) -> int:
        return sum(isinstance(event, ToolCallProposed) for event in self.events)

    def plant(self, law: str, channel: Channel) -> _Watched:
        with unraised(law, self.rig.integration, reproduce=_planting(channel)):
            self.rig.integration.plant(channel, _TOKEN)
        return self

    def run(self, law: str) -> _Watched:
        with unraised(law, self.rig.integration, reproduce="let the host run"):
            self.rig.run()
        return self

    def channels_with_token(self) -> frozenset[Channel]:
        return frozenset(event.channel for event in self.events if _TOKEN.encode() in encode_event(event))


def _whole(event: Event) -> bool:
    return isinstance(event, HostEvent) and decode_event(encode_event(event)) == event


def _claimed(fixture: IntegrationFixture) -> frozenset[Channel]:
    return _Watched(fixture).rig.integration.coverage().sees


def _decision(*, allowed: bool) -> Decision:
    return Decision(session="s-1", seq=0, about=0, allowed=allowed)


def _planting(channel: Channel | None) -> str:
    return f"plant({channel!r}, token), then let the host run" if channel else "let the host run"
