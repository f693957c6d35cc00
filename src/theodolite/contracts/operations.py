"""What OpenAPI and Swagger have in common: paths, operations, names, and references between their objects."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from theodolite.contracts.document import child, find, is_list, is_object, pointer_of, show, word
from theodolite.contracts.registry import Registry, fail, refuse_remote
from theodolite.core.contract import Contract, Contracts, Gap, Location, Origin, Part
from theodolite.core.errors import ConfigError
from theodolite.core.text import brief

__all__ = ("Operations", "Parameter", "Place", "text_of")


_TEMPLATE = re.compile(r"\{([^{}]*)\}")


class Place(Struct, frozen=True, gc=False):
    """An object of the document, and the pointer to it."""

    node: dict[str, object]
    pointer: str


class Parameter(Struct, frozen=True, kw_only=True):
    """A parameter of an operation, with its name and place checked."""

    name: str
    location: Location
    required: bool
    place: Place


class Operations:
    """Reads the operations of one document. Subclasses say what an operation's parts are.

    `request` and `response` are the registries of the two directions, and may be one.
    """

    origin = Origin.OPENAPI
    methods: tuple[str, ...] = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
    locations: Mapping[str, Location]

    def __init__(self, root: dict[str, object], digest: str, request: Registry, response: Registry) -> None:
        self.root = root
        self.request = request
        self.response = response
        self.gaps: list[Gap] = []
        self._digest = digest
        self._contracts: dict[str, Contract] = {}
        self._aliases: dict[str, str] = {}

    def read(self) -> Contracts:
        """Return all contracts of the document. Raises ConfigError for what cannot be one, with its pointer."""
        for path, pointer in self._paths():
            self.path_item(path, pointer)
        self.rest()
        for alias, name in self._aliases.items():
            if alias in self._contracts:
                self._claim(alias, self._contracts[name].pointer)
        documents = {**self.request.finish(), **self.response.finish()}
        for registry in {id(self.request): self.request, id(self.response): self.response}.values():
            self.gaps.extend(registry.gaps)
        return Contracts(
            contracts=self._contracts,
            digest=self._digest,
            aliases=self._aliases,
            documents=documents,
            gaps=tuple(dict.fromkeys(self.gaps)),
        )

    def parts(self, operation: Place, parameters: tuple[Parameter, ...], name: str) -> Iterator[Part]:
        """Yield what goes into a call of an operation."""
        raise NotImplementedError

    def results(self, operation: Place, name: str) -> Iterator[Part]:
        """Yield what may come back."""
        raise NotImplementedError

    def fields(self, operation: Place, parameters: tuple[Parameter, ...]) -> frozenset[str]:
        """Return the names that the body declares at its top."""
        raise NotImplementedError

    def rest(self) -> None:
        """Add the schemas that no operation leads to, so that their `$ref`s are checked too."""
        raise NotImplementedError

    def gap(self, pointer: str, reason: str, contract: str = "") -> None:
        """Note what is not checked."""
        self.gaps.append(Gap(contract=contract, pointer=pointer, reason=reason))

    def at(self, node: object, pointer: str) -> Place:
        """Return the object that stands there or that the `$ref` that stands there leads to, over any number of them.

        Raises ConfigError where it is no object, leads out of the document, nowhere, or in a circle.
        """
        seen = {pointer}
        while True:
            if not is_object(node):
                fail((None, pointer), f"this must be an object, and it is {word(node)}")
            reference = node.get("$ref")
            if not isinstance(reference, str):
                return Place(node, pointer)
            target = self.local(reference, pointer)
            node = find(self.root, target, None)
            if node is None:
                fail((None, pointer), f"the $ref to #{show(target)} leads nowhere: add what it names, or correct it")
            if target in seen:
                fail((None, pointer), "this $ref leads back to itself: give the object itself somewhere")
            seen.add(target)
            pointer = target

    def local(self, reference: str, pointer: str) -> str:
        """Return the pointer that a `$ref` means, or raise ConfigError if it leads out of the document."""
        if not reference.startswith("#/"):
            refuse_remote((None, pointer), reference)
        return pointer_of(reference[1:])

    def below(self, place: Place, key: str) -> Iterator[tuple[str, Place]]:
        """Yield the objects of a map below a place, `$ref`s followed, extensions left out."""
        node = place.node.get(key)
        if node is None:
            return
        pointer = child(place.pointer, key)
        if not is_object(node):
            fail((None, pointer), f"this must be an object, and it is {word(node)}")
        for name, entry in node.items():
            if not name.startswith("x-"):
                yield name, self.at(entry, child(pointer, name))

    def _paths(self) -> Iterator[tuple[str, str]]:
        paths = self.root.get("paths", {})
        if not is_object(paths):
            fail((None, "/paths"), f"this must be an object, and it is {word(paths)}")
        for path in paths:
            if path.startswith("/"):
                yield path, child("/paths", path)
            elif not path.startswith("x-"):
                fail((None, child("/paths", path)), "a path begins with /, and an extension with x-")

    def path_item(self, path: str, pointer: str) -> None:
        """Read the operations of one path. What stands beside a `$ref` of a path item goes before what it leads to."""
        here = self._object(find(self.root, pointer), pointer)
        target = self.at(here.node, pointer)
        places = [here] if target.pointer == pointer else [here, target]
        shared: dict[tuple[str, str], Parameter] = {}
        for place in reversed(places):
            shared = self._parameters(place, shared)
        done: set[str] = set()
        for place in places:
            for method, operation in self.operations(place):
                if method not in done:
                    done.add(method)
                    used = f"{pointer}{operation.pointer.removeprefix(place.pointer)}"
                    self._operation(method, path, operation, shared, used)

    def operations(self, item: Place) -> Iterator[tuple[str, Place]]:
        """Yield the operations of a path item, by method."""
        for method in self.methods:
            if method in item.node:
                yield method.upper(), self._object(item.node[method], child(item.pointer, method))

    def _object(self, node: object, pointer: str) -> Place:
        if not is_object(node):
            fail((None, pointer), f"this must be an object, and it is {word(node)}")
        return Place(node, pointer)

    def _operation(
        self, method: str, path: str, operation: Place, shared: dict[tuple[str, str], Parameter], used: str
    ) -> None:
        alias = f"{method} {path}"
        name = operation.node.get("operationId", alias)
        if not isinstance(name, str) or not name:
            fail((None, child(used, "operationId")), "an operationId is text, and not empty")
        self._claim(name, used)
        parameters = tuple(self._parameters(operation, shared).values())
        self._contracts[name] = Contract(
            name=name,
            origin=self.origin,
            parts=tuple(self.parts(operation, parameters, name)),
            results=tuple(self.results(operation, name)),
            method=method,
            path=path,
            title=text_of(operation.node, "summary"),
            description=text_of(operation.node, "description"),
            pointer=used,
            fields=self.fields(operation, parameters),
        )
        self._check_path(path, parameters, used, name)
        if alias != name:
            self._aliases[alias] = name

    def _check_path(self, path: str, parameters: tuple[Parameter, ...], used: str, name: str) -> None:
        """Note the parameters that only the path or only the operation names."""
        named = {text for text in _TEMPLATE.findall(path) if isinstance(text, str)}
        given = {parameter.name for parameter in parameters if parameter.location is Location.PATH}
        if named - given:
            self.gap(used, "a parameter in the path is not declared", name)
        if given - named:
            self.gap(used, "a declared parameter is not in the path", name)

    def _claim(self, name: str, pointer: str) -> None:
        other = self._contracts.get(name)
        if other is not None:
            raise ConfigError(
                f"{show(pointer)}: the operationId {brief(name)} is that of {show(other.pointer)} too, and a call "
                "cannot say which is meant: rename or remove one of them"
            )

    def _parameters(
        self, place: Place, shared: Mapping[tuple[str, str], Parameter]
    ) -> dict[tuple[str, str], Parameter]:
        """Return the parameters of a path item or operation, which replace those of the path by name and location."""
        merged = dict(shared)
        node = place.node.get("parameters", [])
        pointer = child(place.pointer, "parameters")
        if not is_list(node):
            fail((None, pointer), f"this must be an array, and it is {word(node)}")
        for index, entry in enumerate(node):
            parameter = self._parameter(self.at(entry, child(pointer, index)))
            name = parameter.name.lower() if parameter.location is Location.HEADER else parameter.name
            merged[name, text_of(parameter.place.node, "in")] = parameter
        return merged

    def _parameter(self, place: Place) -> Parameter:
        name = place.node.get("name")
        if not isinstance(name, str):
            fail((None, place.pointer), "a parameter has a name, which is text")
        location = self.locations.get(text_of(place.node, "in"))
        if location is None:
            fail((None, place.pointer), f"a parameter is `in` one of {', '.join(self.locations)}")
        required = place.node.get("required") is True or location is Location.PATH
        return Parameter(name=name, location=location, required=required, place=place)


def text_of(node: Mapping[str, object], key: str) -> str:
    """Return the text under a key, or none.

    >>> text_of({"summary": "List pets"}, "summary"), text_of({"summary": 3}, "summary")
    ('List pets', '')
    """
    value = node.get(key)
    return value if isinstance(value, str) else ""
