"""Which names a schema declares at the top of what it describes."""

from __future__ import annotations

from theodolite.contracts.document import find, is_list, is_object, pointer_of

__all__ = ("declared",)

_MEMBERS = ("allOf", "anyOf", "oneOf")


def declared(root: dict[str, object], node: object) -> frozenset[str]:
    """Return the names under `properties`, here, behind `$ref`s within the document, and in every branch.

    >>> root = {"a": {"properties": {"x": {}}}}
    >>> sorted(declared(root, {"anyOf": [{"$ref": "#/a"}, {"properties": {"y": {}}}]}))
    ['x', 'y']
    """
    names: set[str] = set()
    stack = [node]
    seen: set[int] = set()
    while stack:
        here = stack.pop()
        if not is_object(here) or id(here) in seen:
            continue
        seen.add(id(here))
        properties = here.get("properties")
        if is_object(properties):
            names.update(properties)
        reference = here.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            stack.append(find(root, pointer_of(reference[1:]), None))
        for key in _MEMBERS:
            members = here.get(key)
            if is_list(members):
                stack.extend(members)
    return frozenset(names)
