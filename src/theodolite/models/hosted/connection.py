"""The connection under an official SDK. Imported only when a model is made: needs httpx2.

Whatever a server sends is bounded before it is held.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from functools import cache

import anyio
import httpx2

__all__ = ("MAX_BODY", "CutError", "EncodedError", "TooLongError", "http_client")

# Bytes of one answer. Our choice: the longest answers on offer are some 128,000 tokens, half a megabyte of text; with
# twenty alternatives to each of a thousand tokens beside it, still below two.
MAX_BODY = 16 * 2**20
# Seconds to connect: the default of the OpenAI and Anthropic SDKs.
CONNECT = 5.0
_CUT = (httpx2.TransportError, ssl.SSLError, anyio.EndOfStream)


class CutError(httpx2.TransportError):
    """The body of an answer ended before its end."""


class TooLongError(httpx2.TransportError):
    """The body of an answer is longer than anything that can be one."""


class EncodedError(httpx2.TransportError):
    """The body of an answer is compressed, although that was not asked for."""


class _Bounded(httpx2.AsyncByteStream):
    """A body of which no more is read than an answer can be long."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for piece in self._stream:
                size += len(piece)
                yield piece
                if size > MAX_BODY:
                    break
        except httpx2.TimeoutException:
            raise
        except _CUT as error:
            raise CutError(f"after {size} bytes") from error
        if size > MAX_BODY:
            raise TooLongError(f"more than {MAX_BODY} bytes")

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _bound(response: httpx2.Response) -> None:
    # A compressed body grows a thousandfold when it is read, which no bound on what is received would hold back.
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise EncodedError(response.headers["content-encoding"])
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Bounded(response.stream)


@cache
def _tls() -> ssl.SSLContext:
    """Return what connections are verified with. Made once, since reading the certificates takes 20 ms and more."""
    return httpx2.create_ssl_context()


def http_client(*, timeout: float, connections: int) -> httpx2.AsyncClient:
    """Return a client whose answers are bounded, that asks for no compression and follows no redirect.

    A redirect would carry the key and the session's text to an address that nobody named.
    """
    return httpx2.AsyncClient(
        verify=_tls(),
        timeout=httpx2.Timeout(timeout, connect=min(CONNECT, timeout)),
        limits=httpx2.Limits(max_connections=connections, max_keepalive_connections=connections),
        headers={"accept-encoding": "identity"},
        event_hooks={"response": [_bound]},
        follow_redirects=False,
    )
