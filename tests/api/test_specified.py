"""What was read of a document is kept, by its content, for all who read it in this process."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Thread

import pytest

from theodolite.api.payload import OpenAPIDriftGuard
from theodolite.api.specified import published
from theodolite.cli.guarding import loaded
from theodolite.config.contracts import contracts_of
from theodolite.core.errors import ConfigError


def text(name: str = "add", size: int = 0) -> bytes:
    return json.dumps([{"name": name, "description": "x" * size, "inputSchema": {"type": "object"}}]).encode()


def test_the_same_bytes_are_read_once_by_whoever_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    file.write_bytes(text("everybody"))
    first = loaded(file)
    [of_settings] = contracts_of([file]).values()
    for other in (of_settings, OpenAPIDriftGuard(spec=file).contracts, loaded(file)):
        assert other.contracts["everybody"] == first.contracts["everybody"]
    # A plain schema goes by its name, so that the name is a part of what is read.
    assert of_settings is OpenAPIDriftGuard(spec=file).contracts
    assert loaded(file) is first
    file.write_bytes(text("another"))
    assert [*loaded(file).contracts] == ["another"]


def test_what_is_kept_is_bounded() -> None:
    first = published(text("first"), source="a.json")
    for number in range(7):
        published(text(f"other {number}"), source="a.json")
    assert published(text("first"), source="a.json") is first
    for number in range(8):
        published(text(f"more {number}"), source="a.json")
    assert published(text("first"), source="a.json") is not first
    large = published(text("large", 17_000_000), source="a.json")
    assert published(text("large", 17_000_000), source="a.json") is not large


def test_the_ending_of_a_name_and_what_went_wrong_are_not_forgotten() -> None:
    words = b"{type: object}"
    assert published(words, source="a.yaml").contracts.find("schema")
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"a\.json: line 1: it is no JSON"):
            published(words, source="a.json")
        with pytest.raises(ConfigError, match=r"b\.json: /0: a tool is an object"):
            published(b"[1]", source="b.json")


def test_progress_is_told_of_what_is_read_and_not_of_what_is_kept() -> None:
    told: list[tuple[int, int]] = []
    data = b"type: object\nenum:\n" + b"- x\n" * 20_000
    for _ in range(2):
        published(data, source="a.yaml", progress=lambda done, total: told.append((done, total)))
    assert told[0] == (0, len(data))
    assert told[-1] == (len(data), len(data))
    assert told == sorted(told)
    assert len(told) > 3


def test_threads_may_read_at_once() -> None:
    found: list[object] = []

    def work() -> None:
        found.extend(published(text(f"thread {number % 12}"), source="a.json").contracts for number in range(60))

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 240
