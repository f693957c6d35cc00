"""What an argument of a call is for: its role, from the operator, the tool's schema, its name, or its value.

Text that others wrote may fill the body of a summary; where it names who receives the summary, the agent works for
them. The roles are those of PACT (arXiv 2605.11039).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache

from msgspec import UNSET

from theodolite.core.arguments import is_mapping, thaw
from theodolite.core.event import Tool
from theodolite.core.intent import Role
from theodolite.features.intents import words

__all__ = ("Kind", "address", "addresses", "declared_roles", "host", "links", "role_of")

_NAMES: Mapping[Role, str] = {
    Role.CREDENTIAL: (
        "password passwd passphrase pwd token secret credential credentials apikey accesskey secretkey privatekey pin "
        "otp"
    ),
    Role.COMMAND: "cmd command code script sql shell program expression",
    Role.TARGET: (
        "recipient recipients to cc bcc participant participants attendee attendees invitee member members user users "
        "username email emails channel url uri link destination dest target payee account iban contact host hostname "
        "endpoint webhook domain phone receiver address id ids path file filename folder repo repository bucket queue "
        "topic room server ip"
    ),
    Role.CONTENT: (
        "body content contents text message subject title description note notes comment reason html markdown data "
        "name summary"
    ),
    Role.SELECTOR: "query filter search sort properties type category keyword keywords pattern label",
    Role.CONTROL: (
        "amount price n limit count total quantity date day time start end from until when deadline recurring status "
        "size page offset format mode"
    ),
}
_BY_NAME = {word: role for role, names in _NAMES.items() for word in names.split()}
# The formats of JSON Schema (validation, section 7.3) and OpenAPI that say what a string is for.
_BY_FORMAT = {
    **dict.fromkeys(("email", "idn-email", "uri", "uri-reference", "iri", "hostname", "idn-hostname"), Role.TARGET),
    **dict.fromkeys(("ipv4", "ipv6", "phone", "tel", "iban"), Role.TARGET),
    **dict.fromkeys(("date", "time", "date-time", "duration"), Role.CONTROL),
    "password": Role.CREDENTIAL,
}
# Roles that a value keeps whatever it looks like: a link in a query is looked for, not gone to.
_KEPT = frozenset({Role.CONTENT, Role.SELECTOR, Role.CREDENTIAL, Role.COMMAND})
# An unnamed argument of more characters is a text; the longest recorded value of another role has 56.
_TEXT = 60
_SHORTEST = 8  # hardly an address is shorter: "a@b.info", "www.a.io", the least account number
_LONGEST = 2_048
_PARAMETERS = 256
_BETWEEN = re.compile(r"[\s=|,;<>]+")
_AROUND = "'\"()[]{}.:!?`"


class Kind(StrEnum):
    """The kinds of address."""

    MAIL = "mail"
    LINK = "link"
    ACCOUNT = "account"


# To look a member up in its enum takes Python 3.11 four times as long as a name of the module: what each call asks for.
_TARGET, _CONTENT, _SELECTOR = Role.TARGET, Role.CONTENT, Role.SELECTOR
_MAIL = re.compile(r"[^@\s]+@[^@\s]+\.\w+\Z")
_LINK = re.compile(r"(?:https?://|www\.)\S+\Z|\w[\w-]*(?:\.\w[\w-]*)*\.[a-z]{2,}/\S*\Z", re.IGNORECASE)
# An IBAN (ISO 13616) or a long number such as a telephone's (E.164).
_ACCOUNT = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{8,30}\Z|\+?[0-9]{8,}\Z")
_HOST = re.compile(r"(?:[a-z][a-z0-9+.-]*://)?(?:[^/?#@\s]*@)?([^/?#:@\s]+)", re.IGNORECASE)
# It starts with one set of characters, which the engine looks for at many times the speed of an alternation.
_LINKS = re.compile(r"[hHwW](?i:(?<=h)ttps?://|(?<=w)ww\.)[^\s<>\"'()]+")


def address(value: str) -> Kind | None:
    """Return what kind of address a value is, if it is one.

    >>> address("eve@evil.example"), address("www.evil.example"), address("DE89370400440532013000"), address("Anna")
    (<Kind.MAIL: 'mail'>, <Kind.LINK: 'link'>, <Kind.ACCOUNT: 'account'>, None)
    """
    if " " in value or not _SHORTEST <= len(value) <= _LONGEST:
        return None
    if "@" in value and _MAIL.match(value):
        return Kind.MAIL
    if "." in value and _LINK.match(value):
        return Kind.LINK
    return Kind.ACCOUNT if _ACCOUNT.match(value) else None


def links(text: str) -> list[str]:
    """Return the links inside a text, in order, without the stops that end a sentence.

    A bare domain, without `www.` or `https://`, is not seen.
    """
    if "://" not in text and "www." not in text.lower():
        return []
    return [found.rstrip(".,:;!?") for found in _LINKS.findall(text)]


def addresses(text: str) -> list[str]:
    """Return the addresses of any kind inside a text, in order, without what stands around them.

    >>> addresses("IBAN: DE89370400440532013000 (Acme), or mail <pay@acme.example>")
    ['DE89370400440532013000', 'pay@acme.example']
    """
    found = links(text)
    tokens = (token.strip(_AROUND) for token in _BETWEEN.split(text))
    return found + [token for token in tokens if address(token) is not None and token not in found]


def host(link: str) -> str:
    """Return the host that a link names, or the link where it names none.

    >>> host("https://user@www.evil.example:8080/pay?to=anna"), host("www.evil.example/x"), host("Anna")
    ('www.evil.example', 'www.evil.example', 'Anna')
    """
    found = _HOST.match(link)
    return found[1] if found else link


def role_of(path: str, value: str, known: Mapping[str, Role]) -> Role:
    """Return the role of the value at a JSON Pointer; `known` are roles by argument name, from who knows the tool.

    >>> role_of("/recipients/0", "a@example.org", {}), role_of("/body", "Hello!", {})
    (<Role.TARGET: 'target'>, <Role.CONTENT: 'content'>)
    """
    told = known.get(_argument(path)) if known else None
    if told is not None:
        return told
    role = _by_path(path)
    if role not in _KEPT and address(value) is not None:
        return _TARGET
    return role or (_CONTENT if len(value) > _TEXT else _SELECTOR)


def declared_roles(tool: Tool) -> dict[str, Role]:
    """Return the roles that the formats in a tool's schema give, by argument name; of its first 256 arguments."""
    if tool.parameters is UNSET:
        return {}
    properties = thaw(tool.parameters, "the parameters of a tool").get("properties")
    found: dict[str, Role] = {}
    if is_mapping(properties):
        for name, schema in list(properties.items())[:_PARAMETERS]:
            role = _by_schema(schema)
            if role is not None:
                found[str(name)] = role
    return found


def _by_schema(schema: object) -> Role | None:
    if not is_mapping(schema):
        return None
    if "enum" in schema or "const" in schema:
        return Role.CONTROL  # one of the values that the tool's author listed
    return _BY_FORMAT.get(str(schema.get("format"))) or _by_schema(schema.get("items"))


@lru_cache(maxsize=4096)
def _argument(path: str) -> str:
    """Return the name of the argument at a pointer: its last part that is no place in a list."""
    parts = [part for part in path.split("/") if part and not part.isdigit()]
    return parts[-1].replace("~1", "/").replace("~0", "~") if parts else ""


@lru_cache(maxsize=4096)
def _by_path(path: str) -> Role | None:
    spoken = words(_argument(path))
    # The head of a compound comes last: user_email, file_id; some heads are two words: api_key.
    heads = ("".join(spoken[-2:]), *reversed(spoken))
    return next((_BY_NAME[word] for word in heads if word in _BY_NAME), None)
