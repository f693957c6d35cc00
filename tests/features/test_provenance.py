from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from theodolite.core.intent import Origin
from theodolite.features.index import WordIndex
from theodolite.features.provenance import origins


def origin(fold: WordIndex, value: str) -> tuple[Origin, int | None]:
    (found,) = origins(fold, [("/x", value)])
    return found.origin, found.seq


def test_a_value_comes_from_the_text_that_held_all_its_words() -> None:
    fold = WordIndex()
    fold.trust("Send 40 EUR to Anna Smith.")
    fold.distrust(3, "From: mallory@example.org, account DE44 5001")
    fold.distrust(5, "account DE44 5001 again")
    assert origin(fold, "anna smith") == (Origin.USER, None)
    assert origin(fold, "40") == (Origin.USER, None)
    assert origin(fold, "Mallory@Example.ORG") == (Origin.TOOL_RESULT, 3)
    assert origin(fold, "DE44 5001") == (Origin.TOOL_RESULT, 3)
    assert origin(fold, "again") == (Origin.TOOL_RESULT, 5)
    assert origin(fold, "invented") == (Origin.MODEL, None)


def test_what_the_user_says_later_counts_as_the_users() -> None:
    fold = WordIndex()
    fold.distrust(1, "hotel Riverside")
    assert origin(fold, "Riverside") == (Origin.TOOL_RESULT, 1)
    fold.trust("Riverside it is")
    fold.trust("Riverside, please")
    assert origin(fold, "Riverside") == (Origin.USER, None)


def test_a_value_put_together_from_two_results_counts_as_the_models() -> None:
    fold = WordIndex()
    fold.distrust(1, "alpha")
    fold.distrust(2, "beta")
    assert origin(fold, "alpha beta") == (Origin.MODEL, None)


def test_a_value_without_words_counts_as_the_models() -> None:
    assert origin(WordIndex(), "--- !") == (Origin.MODEL, None)


@given(st.lists(st.tuples(st.booleans(), st.text(max_size=30)), max_size=10), st.text(max_size=30))
def test_a_saved_fold_gives_equal_answers(said: list[tuple[bool, str]], value: str) -> None:
    fold = restored = WordIndex()
    for seq, (by_user, text) in enumerate(said):
        restored = msgspec.json.decode(msgspec.json.encode(restored), type=WordIndex)
        for each in (fold, restored):
            if by_user:
                each.trust(text)
            else:
                each.distrust(seq, text)
    assert origins(fold, [("/x", value)]) == origins(restored, [("/x", value)])
