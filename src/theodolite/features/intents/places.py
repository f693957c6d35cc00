"""What a call touches, noted in its Reach: hosts, files, secrets, what it executes. Knows the session's own names."""

from __future__ import annotations

from collections.abc import Collection

from theodolite.core.intent import DataFlow, DestinationKind, Operation, TargetKind
from theodolite.features.intents.addresses import Place, place_of, url_of
from theodolite.features.intents.domains import registrable
from theodolite.features.intents.paths import path_of
from theodolite.features.intents.randomness import looks_random
from theodolite.features.intents.reach import Reach

__all__ = ("Places",)

# A query this long carries something out. Our choice: links that people share are shorter; a token of 256 bits in
# Base64 has 44 characters, so that short secrets pass.
_CARRIES = 256
# What the shell puts in where it stands: what comes out of a command, or a variable.
_SUBSTITUTED = frozenset("$`")

_STRANGERS = frozenset({DestinationKind.EXTERNAL_DOMAIN, DestinationKind.UNKNOWN})


class Places:
    """The places of one call.

    `own` are the registrable domains that the user named, `fetched` and `made` the names of files that earlier calls
    brought from outside, or wrote.
    """

    __slots__ = ("_fetched", "_made", "_own", "reach", "written")

    def __init__(self, own: Collection[str] = (), fetched: Collection[str] = (), made: Collection[str] = ()) -> None:
        self.reach = Reach()
        self.written: list[str] = []
        self._own = own
        self._fetched = fetched
        self._made = made

    def url(self, text: str, *, sends: bool) -> bool:
        """Note a URL, and whether something is sent there; return whether it was one."""
        url = url_of(text)
        if url is None:
            if "://" in text:
                self.reach.sends(DestinationKind.UNKNOWN, DataFlow.LOCAL_TO_EXTERNAL if sends else DataFlow.NONE)
            return False
        if url.place is None:
            self.file(url.path, writes=False)
            return True
        sends = sends or len(url.query) > _CARRIES or not _SUBSTITUTED.isdisjoint(url.query)
        self.place(url.place, sends=sends, carries=url.carries or not _SUBSTITUTED.isdisjoint(url.path))
        return True

    def host(self, host: str, *, sends: bool, carries: bool = False) -> None:
        """Note a host by its name or address; `carries`: what is said to it cannot be seen."""
        self.place(place_of(host), sends=sends, carries=carries or looks_random(host))

    def elsewhere(self, *, sends: bool) -> None:
        """Note a place outside whose owner cannot be told, such as a bucket."""
        self.place(Place(TargetKind.EXTERNAL_URL, DestinationKind.EXTERNAL_DOMAIN), sends=sends)

    def place(self, place: Place, *, sends: bool, carries: bool = False) -> None:
        """Note what an address turned out to be.

        `sends`: something goes there. `carries`: something may, in the question itself, which is a flow that nobody
        knows.
        """
        reach = self.reach
        destination = place.destination
        if destination is DestinationKind.EXTERNAL_DOMAIN:
            if self._own and registrable(place.name) in self._own:
                destination = DestinationKind.SAME_ORIGIN
            if place.official:
                reach.official = True
            else:
                reach.strange = True
        leaves = destination in {
            DestinationKind.EXTERNAL_DOMAIN,
            DestinationKind.SAME_ORIGIN,
            DestinationKind.UNKNOWN,
        }
        flow = DataFlow.LOCAL_TO_EXTERNAL if leaves else DataFlow.LOCAL_TO_LOCAL
        reach.touches(place.target)
        asked = carries and not place.official and destination in _STRANGERS
        unclear = DataFlow.UNKNOWN if asked else DataFlow.NONE
        reach.sends(destination, flow if sends else unclear)

    def carried(self) -> None:
        """Note that a question to somebody takes something along that cannot be seen, such as a header."""
        self.reach.flows(DataFlow.UNKNOWN)

    def names(self, path: str) -> None:
        """Note a file whose name is looked at and whose content is not: a name holds no secret and opens no socket."""
        known = path_of(path)
        target = known.target
        if target is TargetKind.SECRET or target is TargetKind.DOCKER_SOCKET:
            target = TargetKind.SYSTEM_PATH if known.outside else TargetKind.WORKDIR
        self.reach.touches(target)

    def file(self, path: str, *, writes: bool) -> None:
        """Note a file that is read or written."""
        reach = self.reach
        known = path_of(path.removeprefix("@"))
        reach.touches(known.target)
        if writes:
            reach.does(Operation.FILE_WRITE)
            reach.flows(DataFlow.LOCAL_TO_LOCAL)
            reach.outside = reach.outside or known.outside
            self.written.append(known.name)
        elif known.target is TargetKind.SECRET:
            reach.secret = True

    def secret(self) -> None:
        """Note that a secret is read which is no file."""
        self.reach.secret = True
        self.reach.touches(TargetKind.SECRET)

    def executes(self) -> None:
        """Note that code runs which the agent made up."""
        self.reach.does(Operation.EXECUTE_GENERATED_CODE)
        self.reach.executes = True
        self.reach.flows(DataFlow.LOCAL_TO_LOCAL)

    def shell_from_outside(self) -> None:
        """Note that code runs which came from outside."""
        self.reach.executes = True
        self.reach.strange = True
        self.reach.does(Operation.EXECUTE_GENERATED_CODE)
        self.reach.flows(DataFlow.EXTERNAL_TO_SHELL)

    def runs(self, name: str) -> None:
        """Note that a file is run: one that was fetched before, or written by the agent, or of the project."""
        if name in self._fetched or name in self.reach.downloads:
            self.shell_from_outside()
        elif name in self._made or name in self.written:
            self.executes()
        self.reach.touches(TargetKind.WORKDIR)
