"""What an address reaches: this machine, the network around it, the cloud's metadata service, or a domain outside.

Hosts are read as the WHATWG URL standard reads them (https://url.spec.whatwg.org/#host-parsing): an IPv4 address may be
written in one to four parts, each decimal, octal or hexadecimal, and in digits of other scripts; it may stand inside an
IPv6 address, and inside a name of a service that answers with the address in the name.

Limits. Names are not looked up: one that its owner points to a private address counts as outside.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from theodolite.core.intent import DestinationKind, TargetKind
from theodolite.features.intents.randomness import looks_random
from theodolite.features.intents.tables import table

__all__ = ("BARE_METADATA", "Place", "Url", "mail_domain", "place_of", "url_of")

# Where clouds answer a machine's questions about itself, credentials among them. Sources, read in 2026: the metadata
# pages of AWS (EC2, ECS, EKS), Google Cloud, Azure, Alibaba Cloud, Oracle Cloud, Tencent Cloud, IBM Cloud and Scaleway.
_METADATA = frozenset(
    {
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "169.254.0.23",
        "169.254.42.42",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
        "fd00:42::42",
    }
)
BARE_METADATA = frozenset({"metadata", "instance-data", "rancher-metadata"})
"""Names of a metadata service that are ordinary words as well: only what is plainly an address is one of them."""

_METADATA_NAMES = BARE_METADATA | frozenset(
    {
        "metadata.google.internal",
        "metadata.goog",
        "metadata.azure.internal",
        "metadata.tencentyun.com",
        "instance-data.ec2.internal",
        "api.metadata.cloud.ibm.com",
    }
)
# Names that never leave the network: RFC 6761 and 6762, RFC 8375, ICANN's resolution of July 2024 on .internal, and
# what routers and clusters use by themselves.
_INSIDE = frozenset(
    {"local", "internal", "localdomain", "lan", "intranet", "intra", "corp", "home", "private", "arpa", "test", "svc"}
)
_HERE = frozenset({"localhost", "localdomain", "localtest.me", "lvh.me", "vcap.me", "lacolhost.com"})
# Services whose names answer with the address that they hold: nip.io, sslip.io and xip.io, by their documentation.
_SPELLED = re.compile(r"(?:.*?[.-])?(?:(\d{1,3}(?:[.-]\d{1,3}){3})|([0-9a-f]{8}))\.(?:nip|sslip|xip)\.io\Z")
# Of these schemes any number of slashes will do; of others two are needed, or "host:port" would be a scheme.
_SPECIAL = re.compile(r"(https?|wss?|ftp):/*", re.IGNORECASE)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_NAT64 = IPv6Network("64:ff9b::/96")
_SHARED = IPv4Address("100.64.0.0"), IPv4Address("100.127.255.255")  # RFC 6598
# Docker's ports, without and with TLS: IANA's registry.
_DOCKER_PORTS = frozenset({2375, 2376})
_LONGEST_PORT = 65_535
# A name has at most 253 characters (RFC 1035, section 2.3.4), each of which may be written in three.
_LONGEST = 3 * 253
_LABEL = 63

# Documentation that only its publisher writes. Places where anybody may publish a page are none, whatever their fame.
_OFFICIAL = table(
    """
    developer.android.com developer.apple.com developer.mozilla.org cloud.google.com doc.rust-lang.org
    docs.anthropic.com docs.aws.amazon.com docs.djangoproject.com docs.docker.com docs.github.com docs.gitlab.com
    docs.oracle.com docs.pytest.org docs.python.org docs.scipy.org docs.swift.org dev.mysql.com git-scm.com go.dev
    httpd.apache.org datatracker.ietf.org kotlinlang.org kubernetes.io learn.microsoft.com man7.org
    modelcontextprotocol.io nginx.org nodejs.org numpy.org pandas.pydata.org peps.python.org platform.openai.com
    pytorch.org react.dev redis.io scikit-learn.org spec.openapis.org sqlite.org www.postgresql.org
    www.rfc-editor.org www.sqlite.org www.tensorflow.org www.w3.org
    """
)


class Place(NamedTuple):
    """What a host is, and its name as it is compared: lower case, Punycode; empty where it has no name."""

    target: TargetKind
    destination: DestinationKind
    name: str = ""

    @property
    def official(self) -> bool:
        """Whether it publishes documentation of its own and of nobody else."""
        return self.name in _OFFICIAL


_OUTSIDE = TargetKind.EXTERNAL_URL, DestinationKind.EXTERNAL_DOMAIN
_NEAR = Place(TargetKind.PRIVATE_NETWORK, DestinationKind.PRIVATE_NETWORK)
_LOCAL = Place(TargetKind.LOCALHOST, DestinationKind.LOCALHOST)
_CLOUD = Place(TargetKind.CLOUD_METADATA, DestinationKind.PRIVATE_NETWORK)
_DOCKER = Place(TargetKind.DOCKER_SOCKET, DestinationKind.LOCALHOST)
_UNKNOWN = Place(TargetKind.UNKNOWN, DestinationKind.UNKNOWN)


class Url(NamedTuple):
    """A URL taken apart: `path` where it names a file of this machine, else a place.

    `carries`: asking for it tells its server something, by a query, by a name and password, or by a piece that looks
    random.
    """

    place: Place | None
    path: str
    query: str
    carries: bool = False


def url_of(text: str, *, scheme: str = "http") -> Url | None:
    """Return a URL taken apart, or None for text that is none; `scheme` is for one that is written without.

    >>> url_of("http://[::ffff:a9fe:a9fe]/latest/").place.target.value
    'cloud_metadata'
    >>> url_of("http://good.example@0xA9FEA9FE/").place.target.value, url_of("docs.python.org/3/").place.official
    ('cloud_metadata', True)
    """
    text = text.strip().replace("\\", "/")
    written = _SPECIAL.match(text)
    if written is not None:
        text = f"{written[1]}://{text[written.end() :]}"
    elif not _SCHEME.match(text):
        text = f"{scheme}://{text.lstrip('/')}"
    try:
        parts = urlsplit(text)
        if parts.scheme in {"unix", "npipe", "file", "http+unix"} and not (parts.scheme == "file" and parts.hostname):
            return Url(None, unquote(parts.path or parts.netloc), parts.query)
        if not parts.hostname:
            return None
        place = _place(parts)
        told = bool(parts.query) or "@" in parts.netloc
        # A fragment stays with who asks (RFC 3986, section 3.5), unless a tool hands the URL on: it is read as a path.
        carries = told or looks_random(f"{place.name}/{parts.path}/{parts.fragment}")
        return Url(place, parts.path, parts.query, carries)
    except ValueError:  # brackets that hold no address, a port that is no number
        return None


def _place(parts: SplitResult) -> Place:
    place = place_of(parts.hostname or "")
    if place.target in {TargetKind.LOCALHOST, TargetKind.PRIVATE_NETWORK} and _port(parts) in _DOCKER_PORTS:
        return _DOCKER
    return place


def _port(parts: SplitResult) -> int:
    digits = parts.netloc.rpartition(":")[2]
    return int(digits) if digits.isdecimal() and len(digits) <= len(str(_LONGEST_PORT)) else 0


# Sessions ask the same few hosts again and again.
@lru_cache(maxsize=4096)
def place_of(host: str) -> Place:
    """Return what a host is, by its name or address alone.

    >>> [place_of(host).target.value for host in ("2852039166", "0251.0376.0251.0376", "169.254.43518")]
    ['cloud_metadata', 'cloud_metadata', 'cloud_metadata']
    >>> place_of("10.0.0.7").target.value, place_of("metadata.google.internal.").target.value
    ('private_network', 'cloud_metadata')
    """
    if len(host) > _LONGEST:
        return _UNKNOWN
    name = unicodedata.normalize("NFKC", unquote(host)).lower().replace("。", ".").strip("[]").rstrip(".")
    address = _address(name)
    if address is not None:
        return _place_of_address(address)
    if not name.isascii():
        if any(len(label) > _LABEL for label in name.split(".")):
            return _UNKNOWN
        name = _punycode(name)
    return _place_of_name(name)


def _place_of_name(name: str) -> Place:
    if name in _METADATA_NAMES:
        return _CLOUD._replace(name=name)
    labels = name.split(".")
    if labels[-1] in _HERE or ".".join(labels[-2:]) in _HERE:
        return _LOCAL._replace(name=name)
    spelled = _SPELLED.fullmatch(name)
    if spelled is not None:
        held = _ipv4(spelled[1].replace("-", ".") if spelled[1] else f"0x{spelled[2]}")
        return _UNKNOWN if held is None else _place_of_address(held)
    if not re.fullmatch(r"[a-z0-9_.-]+", name) or not name.strip("."):
        return _UNKNOWN  # a variable, a placeholder, or what no name can be
    if len(labels) == 1 or labels[-1] in _INSIDE:
        return _NEAR._replace(name=name)
    return Place(*_OUTSIDE, name=name)


def _punycode(name: str) -> str:
    labels = [label if label.isascii() else f"xn--{label.encode('punycode').decode()}" for label in name.split(".")]
    return ".".join(labels)


def _place_of_address(address: IPv4Address | IPv6Address) -> Place:
    address = _embedded(address)
    if str(address) in _METADATA:
        return _CLOUD
    if address.is_loopback or address.is_unspecified:
        return _LOCAL
    shared = isinstance(address, IPv4Address) and _SHARED[0] <= address <= _SHARED[1]
    if shared or not address.is_global or address.is_multicast:
        return _NEAR
    return Place(*_OUTSIDE, name=str(address))


def _embedded(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address that an IPv6 address stands for, where it does."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    # NAT64 (RFC 6052), and the deprecated "IPv4-compatible" form (RFC 4291, section 2.5.5.1).
    if address in _NAT64 or (int(address) >> 32 == 0 and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _address(name: str) -> IPv4Address | IPv6Address | None:
    if ":" in name:
        try:
            return IPv6Address(name.partition("%")[0])
        except ValueError:
            return None
    return _ipv4(name)


_PARTS = 4


def _ipv4(name: str) -> IPv4Address | None:
    """Return the address of one to four numbers: all but the last are bytes, the last fills what is left."""
    if not (name[:1].isdigit() and name[-1:].isalnum()):
        return None
    numbers = [_number(part) for part in name.split(".")]
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers) or len(known) > _PARTS:
        return None
    *heads, last = known
    room = 8 * (_PARTS - len(heads))
    if any(head > 255 for head in heads) or last >> room:  # noqa: PLR2004 - a byte
        return None
    value = last
    for place, head in enumerate(heads):
        value |= head << (24 - 8 * place)
    return IPv4Address(value)


def _number(part: str) -> int | None:
    if not (part.isascii() and part.isalnum() and len(part) <= 16):  # noqa: PLR2004 - 037777777777 has 12 characters
        return None
    try:
        if part.startswith("0x"):
            return int(part[2:] or "0", 16)
        return int(part, 8) if part.startswith("0") else int(part)
    except ValueError:
        return None


def mail_domain(text: str) -> str:
    """Return the domain of a mail address, in lower case; empty where it is none.

    >>> mail_domain("Eve <eve@Evil.Example>"), mail_domain("Alice")
    ('evil.example', '')
    """
    _, at, domain = text.strip().rpartition("@")
    domain = domain.strip(" <>\"'();,.").lower()
    return domain if at and "." in domain and " " not in domain else ""
