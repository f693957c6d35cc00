"""The registry document that normalized schemas are put into, each where the published one stands."""

from __future__ import annotations

from typing import NoReturn

from theodolite.contracts.document import child, find, fragment, is_list, is_object, show, tokens, word
from theodolite.core.contract import Gap, Schema
from theodolite.core.errors import ConfigError
from theodolite.core.text import brief

__all__ = ("FILE", "FILE_BACK", "REPEATED", "Path", "Registry", "fail", "pointer_to", "refuse_remote", "registry_uris")

REPEATED = "a name stands in this list twice, which JSON Schema does not allow: it counts once"
"""The reason of a gap that leaves nothing unchecked, and is told all the same."""

FILE = "the contents of a file are binary: they are not looked into"
"""The reason of a gap for a file that is sent: its schema has the format `binary`, and no type."""

FILE_BACK = "what comes back is a file, which is binary: it is not looked into"
"""The reason of a gap for a file that is returned."""

# Where the walk stands: what it came from and the key that it took; the start is a pointer. Costs less than text.
Path = tuple["Path | None", str | int]


def pointer_to(at: Path) -> str:
    """Return the pointer of a place in the walk.

    >>> pointer_to(((None, "/components/schemas/Pet"), "properties"))
    '/components/schemas/Pet/properties'
    """
    steps: list[str | int] = []
    here: Path | None = at
    start = ""
    while here is not None:
        above, token = here
        if above is None:
            start = str(token)
        else:
            steps.append(token)
        here = above
    return child(start, *reversed(steps))


def fail(at: Path, what: str) -> NoReturn:
    """Raise the ConfigError of what stands at a place of the document."""
    raise ConfigError(f"{show(pointer_to(at))}: {what}")


def refuse_remote(at: Path, reference: str) -> NoReturn:
    """Raise the ConfigError of a `$ref` to what is not in the document."""
    fail(at, f"the $ref {brief(reference)} leads out of the document, and nothing is ever fetched: bundle it in")


def registry_uris(digest: str) -> tuple[str, str]:
    """Return the names of the registries of one document: that of requests, which is that of both, and of responses."""
    return f"urn:theodolite:{digest}", f"urn:theodolite:{digest}:response"


class Registry:
    """What the engine resolves `$ref`s in: the schemas of one document alone, at the pointers of that document.

    Only what a schema or a `$ref` leads to is kept, so that examples and descriptions of operations cost nothing. An
    array of the document is an object here whose keys are the indices, which pointers cannot tell apart. Subclasses say
    what a schema becomes. Holds a copy of the ways to what it keeps, and nothing else of the document.
    """

    def __init__(self, root: dict[str, object], uri: str) -> None:
        self.root = root
        self.uri = uri
        self.gaps: list[Gap] = []
        self.kept: dict[str, object] = {}
        self._added: dict[str, Schema] = {}
        self._targets: dict[str, Path] = {}
        self._placed: dict[str, object] = {}
        self._ours: dict[int, object] = {id(self.kept): self.kept}  # held, so that no other object gets their ids
        self._visited: set[int] = set()

    def add(self, pointer: str) -> Schema:
        """Normalize the schema at that pointer, and return the schema that refers to it. Once for each pointer."""
        known = self._added.get(pointer)
        if known is None:
            self._place(pointer, self._normal(find(self.root, pointer), (None, pointer)))
            known = self._added[pointer] = {"$ref": f"{self.uri}#{fragment(pointer)}"}
        return known

    def add_made(self, pointer: str, schema: dict[str, object]) -> Schema:
        """Normalize a schema that the document has in other words, and return it, or the one that refers to it.

        What refers to nothing is returned itself, so that equal ones are one to whoever compiles them. The pointer is
        one that the document does not have.
        """
        known = self._added.get(pointer)
        if known is None:
            new = self._normal(schema, (None, pointer))
            if is_object(new) and not _refers(new):
                known = new
            else:
                self._place(pointer, new)
                known = {"$ref": f"{self.uri}#{fragment(pointer)}"}
            self._added[pointer] = known
        return known

    def finish(self) -> dict[str, object]:
        """Follow all `$ref`s, and return the documents of the registry by URI.

        Raises ConfigError for a `$ref` that leads nowhere or to what is no schema.
        """
        followed: set[str] = set()
        while self._targets:
            targets, self._targets = self._targets, {}
            for pointer, at in targets.items():
                if pointer not in followed:
                    followed.add(pointer)
                    self._follow(pointer, at)
        return {self.uri: self.kept}

    def _unique(self, names: list[object], at: Path) -> list[object]:
        """Return a list of names in which each stands once (2020-12, validation, 6.5.3): the engine refuses others."""
        if not all(isinstance(name, str) for name in names) or len(set(names)) == len(names):
            return names
        self.gaps.append(Gap(contract="", pointer=pointer_to(at), reason=REPEATED))
        return list(dict.fromkeys(names))

    def _normal(self, node: object, at: Path) -> object:
        raise NotImplementedError

    def _aim(self, pointer: str, at: Path) -> None:
        """Note that a `$ref` at that place leads to that pointer."""
        self._targets.setdefault(pointer, at)

    def _follow(self, pointer: str, at: Path) -> None:
        target = find(self.root, pointer, None)
        if target is None:
            fail(at, f"the $ref to #{show(pointer)} leads nowhere: add what it names, or correct it")
        if not is_object(target) and not isinstance(target, bool):
            fail(at, f"the $ref to #{show(pointer)} leads to {word(target)}, which is no schema")
        if id(target) not in self._visited:
            self.add(pointer)

    def _place(self, pointer: str, schema: object) -> None:
        steps = tokens(pointer)
        if not steps:  # the root itself
            self.kept = schema if is_object(schema) else self.kept
            return
        node: object = self.kept
        for token in steps[:-1]:
            node = self._below(node, token)
        covered = _put(node, steps[-1], schema)
        self._placed[pointer] = schema
        if covered:  # what was kept below this place before it was reached itself
            for other in [name for name in self._placed if name.startswith(f"{pointer}/")]:
                self._place(other, self._placed[other])

    def _below(self, node: object, token: str) -> object:
        """Return what is below a node as one of our own: what is shared with the document is copied."""
        below = node.get(token) if is_object(node) else node[int(token)] if is_list(node) else None
        if id(below) in self._ours:
            return below
        ours: object = dict(below) if is_object(below) else list(below) if is_list(below) else {}
        self._ours[id(ours)] = ours
        _put(node, token, ours)
        return ours


def _put(node: object, token: str, value: object) -> bool:
    """Set what is below a node, and say whether something was there."""
    if is_list(node):
        node[int(token)] = value
        return True
    if is_object(node):
        covered = token in node
        node[token] = value
        return covered
    return False


def _refers(schema: dict[str, object]) -> bool:
    """Whether a schema, or that of its items, is a `$ref`."""
    node: object = schema
    while is_object(node):
        if "$ref" in node:
            return True
        node = node.get("items")
    return False
