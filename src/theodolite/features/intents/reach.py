"""What one call reaches, gathered piece by piece; of several things the worst is kept."""

from __future__ import annotations

from collections.abc import Mapping

from theodolite.core.intent import DataFlow, DestinationKind, Operation, Provenance, TargetKind

__all__ = ("Reach",)

# From what says least to what says most: our choice, by what an attacker gains. A call that reaches several things is
# known by the last of them in this order.
_TARGETS: Mapping[TargetKind, int] = {
    kind: place
    for place, kind in enumerate(
        (
            TargetKind.UNKNOWN,
            TargetKind.WORKDIR,
            TargetKind.LOCALHOST,
            TargetKind.EXTERNAL_URL,
            TargetKind.PRIVATE_NETWORK,
            TargetKind.SYSTEM_PATH,
            TargetKind.SECRET,
            TargetKind.DOCKER_SOCKET,
            TargetKind.CLOUD_METADATA,
        )
    )
}
_DESTINATIONS: Mapping[DestinationKind, int] = {
    kind: place
    for place, kind in enumerate(
        (
            DestinationKind.NONE,
            DestinationKind.LOCALHOST,
            DestinationKind.SAME_ORIGIN,
            DestinationKind.PRIVATE_NETWORK,
            DestinationKind.UNKNOWN,
            DestinationKind.EXTERNAL_DOMAIN,
        )
    )
}
_FLOWS: Mapping[DataFlow, int] = {
    kind: place
    for place, kind in enumerate(
        (
            DataFlow.NONE,
            DataFlow.LOCAL_TO_LOCAL,
            DataFlow.UNKNOWN,
            DataFlow.LOCAL_TO_EXTERNAL,
            DataFlow.EXTERNAL_TO_SHELL,
        )
    )
}
_OPERATIONS: Mapping[Operation, int] = {
    kind: place
    for place, kind in enumerate(
        (
            Operation.OTHER,
            Operation.UNKNOWN,
            Operation.FILE_READ,
            Operation.SEARCH,
            Operation.TEST,
            Operation.FILE_WRITE,
            Operation.NETWORK_REQUEST,
            Operation.PACKAGE_INSTALL,
            Operation.EXECUTE_GENERATED_CODE,
        )
    )
}


# To look a member up in its enum takes Python 3.11 four times as long as a name of the module: what each call asks for.
_OTHER, _UNREACHED = Operation.OTHER, TargetKind.UNKNOWN
_NOWHERE, _NO_FLOW, _LEAVES = DestinationKind.NONE, DataFlow.NONE, DataFlow.LOCAL_TO_EXTERNAL
_URL, _WORKDIR = TargetKind.EXTERNAL_URL, TargetKind.WORKDIR
_BY_USER, _FROM_WEB = Provenance.USER, Provenance.EXTERNAL_WEB


class Reach:
    """What a call does and touches, so far. Made anew for each call."""

    __slots__ = (
        "destination",
        "downloads",
        "executes",
        "flow",
        "official",
        "operation",
        "outside",
        "secret",
        "strange",
        "target",
    )

    def __init__(self) -> None:
        self.operation = _OTHER
        self.target = _UNREACHED
        self.destination = _NOWHERE
        self.flow = _NO_FLOW
        self.secret = False
        self.outside = False
        self.executes = False
        self.official = False  # it reads from a publisher's own documentation
        self.strange = False  # it reads from, or runs, what is neither the user's nor the repository's
        self.downloads: list[str] = []  # files that it fetches from outside

    def does(self, operation: Operation) -> None:
        """Note what is done."""
        if _OPERATIONS[operation] > _OPERATIONS[self.operation]:
            self.operation = operation

    def touches(self, target: TargetKind) -> None:
        """Note what is reached."""
        if _TARGETS[target] > _TARGETS[self.target]:
            self.target = target

    def sends(self, destination: DestinationKind, flow: DataFlow = _NO_FLOW) -> None:
        """Note where to, and which way data goes."""
        if _DESTINATIONS[destination] > _DESTINATIONS[self.destination]:
            self.destination = destination
        self.flows(flow)

    def flows(self, flow: DataFlow) -> None:
        """Note which way data goes."""
        if _FLOWS[flow] > _FLOWS[self.flow]:
            self.flow = flow

    @property
    def from_outside(self) -> bool:
        """Whether it brings in text that others may have written."""
        return self.strange or (self.target is _URL and not self.official)

    def provenance(self, *, after_external: bool) -> Provenance:
        """Return whose content the call works on, as far as it shows. What it sends away is not the receiver's."""
        outside = self.from_outside
        if outside and self.flow is not _LEAVES:
            return _FROM_WEB
        if self.official and not outside:
            return Provenance.OFFICIAL_DOCS
        if self.target is _WORKDIR:
            return Provenance.REPO
        # Until something from outside was read, nobody but the user can have asked for it.
        return Provenance.UNKNOWN if after_external else _BY_USER
