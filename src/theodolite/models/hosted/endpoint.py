"""Whom a model asks, and what it means when no answer comes. Imported only when a model is made: needs httpx2.

Nothing that a server says is quoted with a secret in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import urlsplit

import httpx2
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from theodolite.core.errors import ConfigError
from theodolite.core.reading import Cause
from theodolite.core.text import printable
from theodolite.models.hosted.connection import CutError, EncodedError, TooLongError
from theodolite.models.hosted.reply import mended
from theodolite.models.hosted.transport import Fault, is_down, may_pass, retry_after

__all__ = ("Endpoint", "no_address", "secrets_of")

# Characters of what a provider says of a fault. Our choice: its reasons are a sentence or two.
QUOTED = 200

_Kinds: TypeAlias = type[Exception] | tuple[type[Exception], ...]


class _Reason(Struct, gc=False):
    message: str = ""
    code: str | int | None = None


class _Refused(Struct, gc=False):
    """The body of a refusal, as OpenAI, Anthropic and most others write it."""

    error: _Reason | str | None = None
    message: str = ""

    @property
    def reason(self) -> _Reason:
        if isinstance(self.error, _Reason):
            return self.error
        return _Reason(message=self.error or self.message)


def no_address() -> ConfigError:
    """Return the error for a base URL that is none. It is not quoted: it may hold a password."""
    return ConfigError("base_url is no address: give one like https://api.example.com/v1")


@dataclass(frozen=True, repr=False)
class Endpoint:
    """Who is asked for what with which key: for messages that say what to do, and for none that says the key."""

    url: str
    model: str
    variable: str
    secrets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _is_address(self.url):
            raise no_address()
        for secret in self.secrets:
            if not (secret.isascii() and secret.isprintable() and secret == secret.strip()):
                raise ConfigError(
                    "the API key has characters that no HTTP header takes, such as a line end: look at api_key and at "
                    f"the variable {self.variable}"
                )

    @property
    def place(self) -> str:
        """The address without user, password and query, which may be secrets."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"

    def unreached(self, cause: BaseException | None) -> Fault:
        """Return the fault behind a request that got no answer, by the error of the connection that caused it."""
        for kinds, fault in _UNREACHED:
            if isinstance(cause, kinds):
                return replace(fault, detail=fault.detail.format(place=self.place, cause=cause))
        return Fault(f"{self.place} closed the connection before it answered", transient=True, down=True)

    def refused(self, status: int, headers: Mapping[str, str], body: bytes) -> Fault:
        """Return the fault behind a response that is none of success."""
        reason = _reason(body)
        detail = f"{self._advice(status, reason)}{self._quoted(reason.message)}"
        exhausted = reason.code == "insufficient_quota"  # OpenAI's 429 for an account without money
        asked = headers.get("x-should-retry")
        transient = may_pass(status) and not exhausted and asked != "false"
        wait = retry_after(headers) if transient else None
        return Fault(detail, transient=transient, wait=wait, down=is_down(status))

    def _advice(self, status: int, reason: _Reason) -> str:
        told = _ADVICE.get(status)
        if reason.code == "insufficient_quota":
            told = "{place} has no credit left for this key: look at the account's billing"
        elif told is None and status >= 500:  # noqa: PLR2004 - HTTP
            told = "{place} is out of order"
        elif told is None and status < 400:  # noqa: PLR2004 - HTTP
            told = "{place} sends on to another address, which is not followed: name that one as base_url"
        told = told or "{place} refuses the request"
        return f"{told.format(place=self.place, model=self.model, variable=self.variable)} (HTTP {status})"

    def _quoted(self, text: str) -> str:
        said = self.shown(text)
        return f": {said}" if said else ""

    def shown(self, text: str) -> str:
        """Return a text as it may be told: without the secrets and control characters, on one line, 200 characters."""
        said = " ".join(printable(self.scrubbed(text)).split())
        said = "".join([c if c.isprintable() else c.encode("unicode_escape").decode() for c in said[: 2 * QUOTED]])
        return said if len(said) <= QUOTED else f"{said[: QUOTED - 1]}\N{HORIZONTAL ELLIPSIS}"

    def scrubbed(self, text: str) -> str:
        """Return a text without the secrets."""
        for secret in self.secrets:
            text = text.replace(secret, "[key]")
        return text


def secrets_of(url: str, *keys: str | None) -> tuple[str, ...]:
    """Return what must be said to nobody: the keys, and a password in the address."""
    password = urlsplit(url).password if _is_address(url) else None
    return tuple([secret for secret in (*keys, password) if secret])


_UNREACHED: tuple[tuple[_Kinds, Fault], ...] = (
    (
        httpx2.ConnectTimeout,
        Fault("no connection to {place} in time: is the server up?", Cause.TIMEOUT, transient=True, down=True),
    ),
    (
        (httpx2.ConnectError, httpx2.PoolTimeout),
        Fault("cannot connect to {place}: is base_url right, and the server up?", transient=True, down=True),
    ),
    (httpx2.TimeoutException, Fault("{place} did not answer in time", Cause.TIMEOUT, down=True)),
    # Asked again, a model would be paid twice, and the answers that get cut, the long ones, drawn anew.
    (CutError, Fault("{place} broke off in the midst of an answer, {cause}; it is not asked again", down=True)),
    (TooLongError, Fault("the answer of {place} has {cause}: nothing that was asked for", Cause.MALFORMED)),
    (EncodedError, Fault("{place} compresses its answer, which was not asked for: fix it there", Cause.MALFORMED)),
    (
        (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError),
        Fault("no request can be made to {place}: look at base_url and the API key"),
    ),
)
"""What an error of the connection means. The first that fits; everything else is a connection that was closed."""

_ADVICE: Mapping[int, str] = {
    401: "{place} does not take the API key: look at api_key and the variable {variable}, and that base_url is the "
    "provider that the key is from",
    402: "{place} wants to be paid first: look at the account's billing",
    403: "{place} does not let this key use {model}: look at what the key, its project or its region may use",
    404: "{place} knows no model {model}, or has no such path: look at the model's name and at base_url, which mostly "
    "ends in /v1 for OpenAI's protocol and does not for Anthropic's",
    413: "the question is too long for {place}",
    429: "{place} is asked too often",
}


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _reason(body: bytes) -> _Reason:
    try:
        return mended(body, _Refused).reason
    except (msgspec.DecodeError, RecursionError):
        return _Reason()
