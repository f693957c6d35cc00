"""Which domains belong to one owner: the registrable domain, by a snapshot of the Public Suffix List.

Source of the rules: https://publicsuffix.org/list/, both its sections, so that two tenants of a shared host are two
owners. The snapshot is data under the Mozilla Public License 2.0 and says so itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.resources import files

__all__ = ("named_domains", "registrable")

# A name has at most 253 characters and 127 labels: RFC 1035, section 2.3.4.
_LONGEST = 253
_NAMED = re.compile(r"(?<![\w.-])(?:[a-z0-9](?:[a-z0-9-]{0,62})\.){1,8}[a-z]{2,24}(?![\w-])", re.IGNORECASE)


@cache
def _rules() -> frozenset[str]:
    """Return the rules of several labels, read once: some 2 ms and 1 MB."""
    text = files("theodolite.features.intents").joinpath("public_suffixes.txt").read_text(encoding="utf-8")
    return frozenset([line for line in text.splitlines() if not line.startswith("//")])


# Sessions name the same few hosts again and again.
@lru_cache(maxsize=4096)
def registrable(host: str) -> str:
    """Return the part of a host name, in lower case and Punycode, that somebody can register; a suffix itself whole.

    >>> registrable("docs.shop.example.co.uk"), registrable("eve.github.io"), registrable("localhost")
    ('example.co.uk', 'eve.github.io', 'localhost')
    """
    labels = host[-_LONGEST:].split(".")
    rules = _rules()
    suffix = 1  # the rule that holds where there is no other: "*"
    for place in range(len(labels)):
        name = ".".join(labels[place:])
        if f"!{name}" in rules:
            suffix = len(labels) - place - 1
            break
        if name in rules or (place + 1 < len(labels) and f"*.{'.'.join(labels[place + 1 :])}" in rules):
            suffix = len(labels) - place
            break
    return ".".join(labels[-suffix - 1 :])


def named_domains(text: str) -> Iterator[str]:
    """Yield the registrable domain of each host name or mail address that a text writes out.

    >>> list(named_domains("Mail bob@shop.example.com the page www.example.org/help, e.g. today."))
    ['example.com', 'example.org']
    """
    for found in _NAMED.finditer(text):
        yield registrable(found[0].lower())
