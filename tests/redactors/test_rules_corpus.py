from __future__ import annotations

import gzip
import re
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from theodolite.redactors.rules import RuleRedactor

TRAIN = Path(__file__).parents[3] / "shared" / "data" / "agentdojo" / "train.jsonl.gz"
ADDRESS = re.compile(r"[\w.-]+@[\w-]+\.[a-z]+")
PLACEHOLDER = re.compile(r"\[REDACTED:([A-Z_0-9]+)\]")


class Said(msgspec.Struct):
    text: str = ""


class Session(msgspec.Struct):
    events: list[Said]


@pytest.mark.corpus
def test_recorded_sessions_lose_what_is_personal_and_no_more() -> None:
    """The sessions name 100 or so mail addresses, four bank accounts, two reset links, a key and a security code.

    Anything of another kind would be a false alarm: there are thousands of dates, times, amounts and ids beside them.
    """
    if not TRAIN.exists():
        pytest.skip(f"the recorded sessions are not there: {TRAIN}")
    redactor = RuleRedactor()
    lines = gzip.decompress(TRAIN.read_bytes()).splitlines()
    texts = {said.text for line in lines for said in msgspec.json.decode(line, type=Session).events}
    kinds: Counter[str] = Counter()
    for text in texts:
        scrubbed = redactor.text(text)
        assert redactor.text(scrubbed) == scrubbed
        assert not ADDRESS.search(scrubbed)
        kinds.update(PLACEHOLDER.findall(scrubbed))
    assert len(texts) > 3000
    assert set(kinds) == {"EMAIL", "IBAN", "SECRET", "PASSWORD"}
    assert kinds["EMAIL"] > 3000
    assert kinds["IBAN"] > 300
    assert kinds["SECRET"] + kinds["PASSWORD"] < 120
