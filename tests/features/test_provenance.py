from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from theodolite.core.intent import Origin
from theodolite.features.provenance import ProvenanceFold


def origin(fold: ProvenanceFold, value: str) -> tuple[Origin, int | None]:
    (found,) = fold.origins([("/x", value)])
    return found.origin, found.seq


def test_a_value_comes_from_the_text_that_held_all_its_words() -> None:
    fold = ProvenanceFold()
    fold.user_said("Send 40 EUR to Anna Smith.")
    fold.returned(3, "From: mallory@example.org, account DE44 5001")
    fold.returned(5, "account DE44 5001 again")
    assert origin(fold, "anna smith") == (Origin.USER, None)
    assert origin(fold, "40") == (Origin.USER, None)
    assert origin(fold, "Mallory@Example.ORG") == (Origin.TOOL_RESULT, 3)
    assert origin(fold, "DE44 5001") == (Origin.TOOL_RESULT, 3)
    assert origin(fold, "again") == (Origin.TOOL_RESULT, 5)
    assert origin(fold, "invented") == (Origin.MODEL, None)


def test_what_the_user_says_later_counts_as_the_users() -> None:
    fold = ProvenanceFold()
    fold.returned(1, "hotel Riverside")
    assert origin(fold, "Riverside") == (Origin.TOOL_RESULT, 1)
    fold.user_said("Riverside it is")
    fold.user_said("Riverside, please")
    assert origin(fold, "Riverside") == (Origin.USER, None)


def test_a_value_put_together_from_two_results_counts_as_the_models() -> None:
    fold = ProvenanceFold()
    fold.returned(1, "alpha")
    fold.returned(2, "beta")
    assert origin(fold, "alpha beta") == (Origin.MODEL, None)


def test_a_value_without_words_counts_as_the_models() -> None:
    assert origin(ProvenanceFold(), "--- !") == (Origin.MODEL, None)


def test_memory_is_bounded_and_says_when_it_is_full() -> None:
    fold = ProvenanceFold()
    for start in range(0, 120_000, 20_000):
        fold.returned(start, " ".join(f"w{n}" for n in range(start, start + 20_000)))
    assert fold.full
    assert len(fold.seen) == 100_000
    assert origin(fold, "w7") == (Origin.TOOL_RESULT, 0)
    assert origin(fold, "w119999") == (Origin.MODEL, None)


def test_a_word_that_stands_everywhere_keeps_its_first_places() -> None:
    fold = ProvenanceFold()
    for seq in range(50):
        fold.returned(seq, "the")
    assert fold.seen["the"] == list(range(8))


@given(st.lists(st.tuples(st.booleans(), st.text(max_size=30)), max_size=10), st.text(max_size=30))
def test_a_saved_fold_gives_equal_answers(said: list[tuple[bool, str]], value: str) -> None:
    fold = restored = ProvenanceFold()
    for seq, (by_user, text) in enumerate(said):
        restored = msgspec.json.decode(msgspec.json.encode(restored), type=ProvenanceFold)
        for each in (fold, restored):
            if by_user:
                each.user_said(text)
            else:
                each.returned(seq, text)
    assert fold.origins([("/x", value)]) == restored.origins([("/x", value)])
