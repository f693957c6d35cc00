"""The file that somebody else keeps a reputation in: what is told of it, once, and what no file can do to the host."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from theodolite.api.probing.reputation import Look, ReputationPoll, read_reputation
from theodolite.core.errors import ConfigError

FINE, FELL, LOW, FAILED = Look
make_poll: Callable[..., ReputationPoll] = ReputationPoll  # with what its types do not allow


class Told:
    """Counts how often it was told."""

    def __init__(self) -> None:
        self.times = 0
        self.fault: Exception | None = None

    async def __call__(self) -> None:
        self.times += 1
        await anyio.lowlevel.checkpoint()
        if self.fault is not None:
            raise self.fault


def looks(file: Path, documents: Sequence[str | bytes | None], told: Told | None = None) -> list[Look]:
    """Write each document in turn (None: no file), and look."""
    poll = ReputationPoll(file, told or Told())

    async def go() -> list[Look]:
        found: list[Look] = []
        for document in documents:
            if document is None:
                file.unlink(missing_ok=True)  # noqa: ASYNC240 - a test
            else:
                file.write_bytes(document.encode() if isinstance(document, str) else document)  # noqa: ASYNC240
            found.append(await poll.look())
        return found

    return anyio.run(go)


def scores(*values: float) -> list[str]:
    return [f'{{"reputation_score": {value}}}' for value in values]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "reputation.json"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((0.5, 0.9, 1, 0.5), [FINE] * 4),
        ((0.4,), [FELL]),
        ((0.9, 0.4, 0.4, 0.4), [FINE, FELL, LOW, LOW]),  # the original triggers at every look
        ((0.4, 0.45, 0.4), [FELL, LOW, LOW]),
        ((0.4, 0.3, 0.2, 0.3), [FELL, FELL, FELL, LOW]),
        ((0.4, 0.6, 0.4), [FELL, FINE, FELL]),
        ((0, 0.0), [FELL, LOW]),
    ],
)
def test_a_fall_is_told_once(file: Path, values: Sequence[float], expected: list[Look]) -> None:
    told = Told()
    assert looks(file, scores(*values), told) == expected
    assert told.times == expected.count(FELL)


def test_whatever_else_the_file_says_is_left_alone(file: Path) -> None:
    assert looks(file, ['{"agent": {"a": [1]}, "reputation_score": 0.1, "at": 5}']) == [FELL]


UNREADABLE: dict[str, str | bytes | None] = {
    "absent": None,
    "empty": "",
    "no JSON": "reputation_score = 0.1",
    "no object": "0.1",
    "a list": '[{"reputation_score": 0.1}]',
    "without": "{}",
    "NaN": '{"reputation_score": NaN}',
    "infinite": '{"reputation_score": -Infinity}',
    "overflow": '{"reputation_score": -1e999}',
    "null": '{"reputation_score": null}',
    "true": '{"reputation_score": true}',
    "text": '{"reputation_score": "0.1"}',
    "below": '{"reputation_score": -0.1}',
    "percent": '{"reputation_score": 10}',
    "no text": b'\xff{"reputation_score": 0.1}',
    "bytes": bytes(range(256)),
    "deep": '{"a": ' + "[" * 30_000 + "]" * 30_000 + ', "reputation_score": 0.1}',
    "huge": '{"reputation_score": 0.1, "a": "' + "x" * 65_536 + '"}',
}


@pytest.mark.parametrize("document", UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_warned_of_once_and_triggers_nothing(
    file: Path, document: str | bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    """In the original NaN never triggers, and every other fault is a debug line."""
    told = Told()
    poll = ReputationPoll(file, told)
    if document is not None:
        file.write_bytes(document.encode() if isinstance(document, str) else document)

    async def go() -> list[Look]:
        return [await poll.look() for _ in range(3)]

    assert anyio.run(go) == [FAILED] * 3
    assert (told.times, poll.failures) == (0, 3)
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert "reputation.json" in record.getMessage()
    assert record.getMessage().isascii()


def test_another_fault_or_the_same_after_a_good_look_is_warned_of_again(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good = scores(0.9)[0]
    assert looks(file, [None, None, "{}", good, None, good]) == [FAILED, FAILED, FAILED, FINE, FAILED, FINE]
    assert len(caplog.records) == 3


def test_a_fault_between_two_low_looks_tells_nothing_anew(file: Path) -> None:
    low = scores(0.1)[0]
    assert looks(file, [low, "", low]) == [FELL, FAILED, LOW]


def test_a_trigger_that_raises_is_warned_of_once_and_tried_again(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    told = Told()
    told.fault = ValueError("the key sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789")
    poll = ReputationPoll(file, told)
    file.write_text(scores(0.4)[0])

    async def go() -> list[Look]:
        found = [await poll.look(), await poll.look()]
        told.fault = None
        return [*found, await poll.look(), await poll.look()]

    assert anyio.run(go) == [FAILED, FAILED, FELL, LOW]
    assert told.times == 3
    assert len(caplog.records) == 1
    assert "abcdefgh" not in caplog.text


# What is no file.


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _to_a_pipe(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to(path.with_name("pipe"))


def _to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _to_nothing(path: Path) -> None:
    path.symlink_to(path.with_name("nothing"))


@pytest.mark.parametrize("make", [_fifo, _socket, _loop, _to_a_pipe, _to_a_device, _to_nothing, Path.mkdir])
def test_what_is_no_file_is_not_even_opened(
    tmp_path: Path, make: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    make(Path("r"))
    opened: list[object] = []

    def noted(path: object, *_: object) -> int:
        opened.append(path)
        raise OSError

    monkeypatch.setattr(os, "open", noted)
    with pytest.raises(ValueError, match="cannot be read"):
        read_reputation(Path("r"))
    assert opened == []


def test_a_file_that_became_a_pipe_since_it_was_looked_at_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    seen = (tmp_path / "file").stat()
    os.mkfifo(tmp_path / "r")

    def as_it_was(_: Path) -> os.stat_result:
        return seen

    monkeypatch.setattr(Path, "stat", as_it_was)
    with pytest.raises(ValueError, match="cannot be read: it is no file"):
        read_reputation(tmp_path / "r")


def test_of_a_file_without_end_no_more_is_read_than_a_snapshot_may_have(file: Path) -> None:
    with file.open("wb") as made:
        made.truncate(2**33)
    with pytest.raises(ValueError, match="larger than 65,536 bytes"):
        read_reputation(file)


def test_a_link_to_a_file_is_followed(tmp_path: Path) -> None:
    """Kubernetes mounts files as links."""
    (tmp_path / "real").write_text(scores(0.25)[0])
    (tmp_path / "link").symlink_to("real")
    assert read_reputation(tmp_path / "link") == 0.25


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=60) | st.floats().map(lambda score: f'{{"reputation_score": {score!r}}}'.encode()))
def test_any_bytes_are_a_score_or_a_reason(file: Path, document: bytes) -> None:
    file.write_bytes(document)
    try:
        score = read_reputation(file)
    except ValueError as error:
        assert str(error)  # noqa: PT017 - either is right
    else:
        assert 0.0 <= score <= 1.0


# Time.


def test_it_looks_at_moments_that_nobody_knows_about_as_often_as_was_asked_for(file: Path) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await anyio.lowlevel.checkpoint()
        if len(slept) == 500:
            raise TimeoutError

    poll = ReputationPoll(file, Told(), interval=60.0, sleep=sleep)
    with pytest.raises(TimeoutError):
        anyio.run(poll.run)
    assert len(set(slept)) == 500
    assert 45.0 <= min(slept) < 47.0
    assert 73.0 < max(slept) <= 75.0
    assert sum(slept) / 500 == pytest.approx(60.0, rel=0.03)  # 5 standard deviations are 1.9 s
    assert poll.failures == 499


def test_it_ends_when_it_is_cancelled(file: Path) -> None:
    file.write_text(scores(0.9)[0])

    async def go() -> bool:
        poll = ReputationPoll(file, Told(), interval=0.001)
        with anyio.move_on_after(0.05) as scope:
            await poll.run()
        return scope.cancelled_caught

    assert anyio.run(go)


@pytest.mark.parametrize(
    "wrong",
    [{"path": ""}, {"path": None}, {"threshold": 50}, {"threshold": float("nan")}, {"interval": 0.0}, {"interval": -1}],
)
def test_a_poll_of_something_else_is_refused(file: Path, wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        make_poll(**{"path": file, "trigger": Told(), **wrong})
