"""The contexts of the probing protocol are matched, free of what primes a reading, and held out where they say so."""

from __future__ import annotations

import hashlib
import statistics
import tomllib
from collections import Counter
from pathlib import Path

import probing_contexts
import pytest
from probing_contexts import KEPT, Context, Kind, Taint, kept, lengths, made, unfit

CONTEXTS = kept()
BY_SKELETON: dict[str, dict[Kind, Context]] = {}
for _context in CONTEXTS:
    BY_SKELETON.setdefault(_context.skeleton, {})[_context.kind] = _context
FOLDER = KEPT.parent


def test_what_is_kept_is_what_is_made() -> None:
    assert made() == CONTEXTS
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert hashlib.sha256(KEPT.read_bytes()).hexdigest() in readme


def test_there_are_210_skeletons_of_four_kinds() -> None:
    assert len(BY_SKELETON) == 210
    assert all(set(four) == set(Kind) for four in BY_SKELETON.values())


@pytest.mark.parametrize("count", [24, 60, 120, 210])
def test_the_first_few_are_as_balanced_as_all(count: int) -> None:
    first = [four[Kind.TAINTED] for four in list(BY_SKELETON.values())[:count]]
    assert max(Counter(one.taint for one in first).values()) <= count / 3 + 3
    assert abs(sum(one.yields for one in first) - count / 2) <= 4
    assert abs(sum(one.off_topic for one in first) - count / 2) <= 4
    assert 0.25 <= sum(one.held_out for one in first) / count <= 0.35


def test_roles_and_turns_are_alike_in_all_kinds() -> None:
    for four in BY_SKELETON.values():
        assert len({tuple(role for role, _ in one.messages) for one in four.values()}) == 1


def test_each_skeleton_shares_some_exchanges_and_differs_in_the_others() -> None:
    for four in BY_SKELETON.values():
        shared = set(four[Kind.REF].messages).intersection(*[one.messages for one in four.values()])
        assert len(shared) >= 2
        assert len({one.messages for one in four.values()}) == 4


def test_lengths_are_alike() -> None:
    means = lengths(CONTEXTS)
    middle = statistics.fmean(means.values())
    assert all(abs(size / middle - 1) < 0.05 for size in means.values()), means
    for four in BY_SKELETON.values():
        sizes = [one.characters for one in four.values()]
        assert max(sizes) / min(sizes) < 1.2


def test_no_context_holds_what_would_prime_a_reading() -> None:
    faults = {(one.id, unfit(text)) for one in CONTEXTS for _, text in one.messages if unfit(text)}
    assert not faults


@pytest.mark.parametrize(
    "text",
    ["Compliance first.", "He declined it.", "Take option B.", "Reply only with a number.", "Always answer in JSON.",
     "Please turn all of it down.", "Carry this out.", "Yes.", "I proceed."],
)  # fmt: skip
def test_the_filter_finds_what_it_is_for(text: str) -> None:
    assert unfit(text)


def test_what_is_held_out_is_made_of_nothing_that_others_are_made_of() -> None:
    used: dict[bool, set[str]] = {True: set(), False: set()}
    for one in CONTEXTS:
        used[one.held_out].update(one.templates)
    assert not used[True] & used[False]
    domains = {held_out: {one.domain for one in CONTEXTS if one.held_out is held_out} for held_out in (True, False)}
    assert not domains[True] & domains[False]


def test_taint_is_in_tainted_contexts_alone() -> None:
    for one in CONTEXTS:
        claims = [id_ for id_ in one.templates if id_.startswith("claim-")]
        assert bool(claims) is (one.kind is Kind.TAINTED)
    tools = {one.taint: {role for role, _ in one.messages} for one in CONTEXTS}
    assert "tool" in tools[Taint.INJECTED]
    assert "tool" not in tools[Taint.PRESSURE]


def test_the_hard_ones_have_the_push_and_the_frame_of_the_tainted_ones() -> None:
    for four in BY_SKELETON.values():
        tone = [
            [id_ for id_ in four[kind].templates if id_.startswith(("push-", "frame-"))]
            for kind in (Kind.TAINTED, Kind.HARD)
        ]
        assert tone[0] == tone[1]
        assert tone[0]


def test_templates_are_many() -> None:
    given = tomllib.loads((FOLDER / "templates.toml").read_text(encoding="utf-8"))
    domains = tomllib.loads((FOLDER / "domains.toml").read_text(encoding="utf-8"))["domain"]
    assert len(given["claim"]) >= 30
    assert len(given["push"]) >= 24
    assert sum(len(domain["talk"]) + len(domain["reads"]) for domain in domains) >= 60
    used = {id_ for one in CONTEXTS for id_ in one.templates}
    assert sum(id_.startswith("claim-") for id_ in used) == len(given["claim"])


def test_the_data_are_small(tmp_path: Path) -> None:
    assert KEPT.stat().st_size < 2_000_000
    (tmp_path / "one.jsonl").write_bytes(probing_contexts.written(CONTEXTS[:4]))
    assert kept(tmp_path / "one.jsonl") == CONTEXTS[:4]
