"""Three things that need no score: each is an attack or a test of one wherever it stands.

A cloud's metadata service hands out the machine's credentials, a container engine's socket hands out the machine, and
what leaves it after something from outside and then a secret was read is how an injection steals. Nothing that is done
before, between or after takes them back.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from theodolite.detectors.anomaly.traits import Sign

__all__ = ("RULES", "Chain", "broken_by")

CLOUD, DOCKER, EXFILTRATION = "cloud_metadata", "docker_socket", "exfiltration"
RULES = (CLOUD, DOCKER, EXFILTRATION)
"""The names of the rules: the second part of their codes."""

_CLOUD, _DOCKER = int(Sign.CLOUD_METADATA), int(Sign.DOCKER_SOCKET)
_EXTERNAL, _SECRET, _OUTBOUND = int(Sign.EXTERNAL_READ), int(Sign.SECRET_ACCESS), int(Sign.OUTBOUND)
_AFTER_EXTERNAL, _AFTER_SECRET = int(Sign.AFTER_EXTERNAL_READ), int(Sign.AFTER_SECRET)
_ACTS, _HIDDEN = _CLOUD | _DOCKER, _SECRET | _AFTER_SECRET
_BOTH = _AFTER_EXTERNAL | _AFTER_SECRET


class Chain(Struct, kw_only=True):
    """How far a session has come: something from outside was read, a secret was, and a secret after that.

    Where the flags of an intent tell of both, and none of the intents that were shown read the secret, the order is
    not known, and the worse one is taken: a host that shows the last calls alone hides nothing by that.
    """

    external: bool = False
    secret: bool = False
    primed: bool = False

    def take(self, sign: int) -> tuple[str, ...]:
        """Take the signs of the next intent; return the rules that it breaks. O(1)."""
        broken: list[str] = []
        if sign & _CLOUD:
            broken.append(CLOUD)
        if sign & _DOCKER:
            broken.append(DOCKER)
        if sign & _AFTER_EXTERNAL:
            self.external = True
        if sign & _BOTH == _BOTH and not self.secret:
            self.primed = True
        if sign & _SECRET:
            self.secret = True
            self.primed = self.primed or self.external
        if sign & _OUTBOUND and self.primed:
            broken.append(EXFILTRATION)
        if sign & _EXTERNAL:
            self.external = True
        return tuple(broken)


def broken_by(signs: Iterable[int]) -> tuple[str, ...]:
    """Return the rules that a whole list of intents breaks, however long it is, each once."""
    shown = 0
    known = [sign for sign in signs if sign]
    for sign in known:
        shown |= sign
    if not (shown & _ACTS or (shown & _OUTBOUND and shown & _HIDDEN)):
        return ()
    chain = Chain()
    found: dict[str, None] = {}
    for sign in known:
        found.update(dict.fromkeys(chain.take(sign)))
    return tuple(found)
