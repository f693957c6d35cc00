"""The provider on loopback, seen with nothing but the standard library."""

from __future__ import annotations

import http.client
import json
import socket

import msgspec
import pytest

from theodolite.testing.provider import Asked, Breaks, FakeProvider, Phase, Responds, Says


def post(provider: FakeProvider, path: str, body: str = '{"model": "m-1"}') -> tuple[int, dict[str, object]]:
    port = int(provider.url.rpartition(":")[2])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5.0)
    try:
        connection.request("POST", path, body, {"Authorization": "Bearer sk-1"})
        response = connection.getresponse()
        return response.status, msgspec.json.decode(response.read() or b"{}", type=dict[str, object])
    finally:
        connection.close()


def test_it_answers_each_path_in_its_own_format() -> None:
    said = Says(text="yes", tool_calls=(("pay", '{"to": "ES-77"}'),), letters={"A": 0.5}, cost=0.01)
    with FakeProvider(said) as provider:
        chat, responses, messages = (
            json.dumps(post(provider, path)[1]) for path in ("/v1/chat/completions", "/v1/responses", "/v1/messages")
        )
    assert '"object": "chat.completion"' in chat
    assert '"object": "response"' in responses
    assert '"type": "message"' in messages
    assert all("yes" in body and "pay" in body and "0.01" in body for body in (chat, responses, messages))
    assert [asked.path for asked in provider.asked] == ["/v1/chat/completions", "/v1/responses", "/v1/messages"]
    assert provider.asked[0].headers["authorization"] == "Bearer sk-1"
    assert provider.connections == 3


def test_it_answers_as_often_as_it_is_asked_to() -> None:
    with FakeProvider("yes") as provider:
        _, body = post(provider, "/v1/chat/completions", '{"n": 3}')
    assert json.dumps(body).count('"yes"') == 3
    assert provider.asked[0].draws == 3


def test_a_script_is_gone_through_in_turn_or_asked() -> None:
    with FakeProvider(["first", Responds(status=503)]) as provider:
        assert [post(provider, "/v1/responses")[0] for _ in range(3)] == [200, 503, 503]

    def echo(asked: Asked) -> str:
        return str(asked.body["model"])

    with FakeProvider(echo) as provider:
        assert "m-1" in json.dumps(post(provider, "/v1/messages")[1]["content"])


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("how", ["close", "reset"])
def test_it_breaks_off_where_it_is_told_to(phase: Phase, how: str) -> None:
    said = Breaks(phase, "close" if how == "close" else "reset")
    with FakeProvider(said) as provider:
        if how == "close" and phase in {Phase.DONE, Phase.HEADERS}:  # this client takes the end for that of the headers
            assert post(provider, "/v1/messages")[0] == 200
            return
        with pytest.raises((OSError, http.client.HTTPException)):
            post(provider, "/v1/messages")


def test_one_that_hangs_is_let_go_when_it_is_closed() -> None:
    provider = FakeProvider(Breaks(Phase.REQUEST, "hang"))
    port = int(provider.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=5.0) as connection:
        connection.sendall(b"POST /v1/messages HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}")
        while not provider.asked:
            pass
        provider.close()
        assert connection.recv(1) == b""


def test_a_closed_one_refuses_and_a_deaf_one_lets_nobody_connect() -> None:
    with FakeProvider("yes") as provider:
        closed = int(provider.url.rpartition(":")[2])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", closed), timeout=5.0)
    with FakeProvider("yes", deaf=True) as provider, pytest.raises(TimeoutError):
        socket.create_connection(("127.0.0.1", int(provider.url.rpartition(":")[2])), timeout=0.05)


@pytest.mark.parametrize(
    "noise",
    [b"", b"\r\n", b"hello\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\n[1,2]"],
)
def test_noise_does_it_no_harm(noise: bytes) -> None:
    with FakeProvider("yes") as provider:
        port = int(provider.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=5.0) as connection:
            connection.sendall(noise)
        assert post(provider, "/v1/messages")[0] == 200
