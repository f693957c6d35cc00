"""What is found in a faster way is what the plain way finds: each is written out here as its words say it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theodolite.core.arguments import freeze, leaves
from theodolite.core.detector import Feature
from theodolite.core.event import GoalStated, Source, ToolCallProposed, ToolResultObserved, stamp
from theodolite.features.answers import Answers
from theodolite.features.folds import Folds
from theodolite.features.index import Sentence, WordIndex, words_of
from theodolite.features.intents.randomness import looks_random
from theodolite.features.margin import explain, tool_words
from theodolite.features.provenance import origins
from theodolite.features.roles import address, links

WORDS = st.sampled_from(["send", "file", "anna", "report", "garden", "example", "7", "é", "unheard"])
PIECES = st.sampled_from(["send", "file", "Anna", "report", "garden", "a@b.example", "www.a.example/x", "7", "é"])
TEXTS = st.lists(st.lists(PIECES, min_size=1, max_size=6).map(" ".join), min_size=1, max_size=6).map(". ".join)
VALUES = st.lists(st.tuples(st.sampled_from(["/to", "/body", "/url", "/n/0", "/password"]), TEXTS), max_size=5)
# Some words of which an index may hold more than one generation, of 512 sentences.
LONG = st.lists(st.lists(PIECES, min_size=1, max_size=3).map(" ".join), min_size=2, max_size=3).map(". ".join)
RESULTS = st.lists(TEXTS, max_size=6) | st.lists(LONG.map(lambda text: f"{text}.\n" * 150), min_size=1, max_size=4)
# How long it takes is for the benchmarks: a busy machine is no failure.
unhurried = settings(deadline=None)


def indexed(goal: str, results: Sequence[str]) -> WordIndex:
    index = WordIndex()
    index.trust(goal)
    for seq, text in enumerate(results, 2):
        index.distrust(seq, text)
    return index


def held(index: WordIndex) -> list[tuple[Sentence, set[str]]]:
    """Return each sentence with its words, the oldest first."""
    return [
        (sentence, {word for word, numbers in generation.places.items() if number in numbers})
        for generation in index.generations
        for number, sentence in enumerate(generation.sentences)
    ]


@unhurried
@given(TEXTS, RESULTS, VALUES)
def test_words_that_were_read_once_for_all_give_the_same_answers(
    goal: str, results: Sequence[str], values: Sequence[tuple[str, str]]
) -> None:
    index, same = indexed(goal, results), indexed(goal, results)
    texts = [text for _, text in values]
    spoken = index.spoken(texts, 4_096, tool_words("send_file"))
    assert origins(index, values, {}, spoken) == origins(index, values)
    assert explain(index, "send_file", texts, None, spoken) == explain(same, "send_file", texts)


@settings(unhurried, max_examples=50)
@given(TEXTS, RESULTS, st.lists(WORDS, max_size=5))
def test_a_word_is_counted_once_for_each_sentence_that_holds_it(
    goal: str, results: Sequence[str], words: Sequence[str]
) -> None:
    index = indexed(goal, results)
    sentences = held(index)
    assert index.counts(words) == {word: sum(word in known for _, known in sentences) for word in words}


@settings(unhurried, max_examples=50)
@given(TEXTS, RESULTS, st.lists(st.lists(WORDS, unique=True, max_size=4), max_size=3))
def test_a_sentence_weighs_what_its_words_do(goal: str, results: Sequence[str], parts: Sequence[Sequence[str]]) -> None:
    index = indexed(goal, results)
    counts = index.counts([word for part in parts for word in part])
    sentences = held(index)
    for part, (_, _, weighed) in zip(parts, index.weigh(parts, counts), strict=True):
        assert set(weighed) == {n for n, (_, known) in enumerate(sentences) if not known.isdisjoint(part)}
        for number, weight in weighed.items():
            own = [word for word in part if word in sentences[number][1]]
            alone = [next(index.weigh([[word]], counts))[0] for word in own]
            assert weight == pytest.approx(sum(alone))


@unhurried
@given(TEXTS, st.lists(TEXTS, max_size=6), st.lists(WORDS, min_size=1, unique=True, max_size=3))
def test_words_first_stood_in_the_oldest_event_that_holds_them_all(
    goal: str, results: Sequence[str], words: Sequence[str]
) -> None:
    index = indexed(goal, results)
    events: dict[int, set[str]] = {}
    for sentence, known in held(index):
        events.setdefault(sentence.seq, set()).update(known)
    found = index.first(words, index.counts(words))
    assert (None if found is None else found.seq) == min(
        (s for s, all_ in events.items() if all_ >= set(words)), default=None
    )


@settings(unhurried, max_examples=50)
@given(
    TEXTS, RESULTS, st.lists(WORDS, max_size=3), st.lists(WORDS, max_size=2), st.sampled_from([(0, 0), (1, 0), (2, 2)])
)
def test_near_looks_at_the_sentences_of_one_text_around_the_first_that_starts_there(
    goal: str, results: Sequence[str], words: Sequence[str], without: Sequence[str], sides: tuple[int, int]
) -> None:
    before, after = sides
    index = indexed(goal, results)
    known = held(index)[-len(index.generations[-1].sentences) :] if index.generations else []
    for number, (sentence, own) in enumerate(known[:20]):
        twin = any(other.seq == sentence.seq and other.start == sentence.start for other, _ in known[:number])
        around = [
            have
            for place, (other, have) in enumerate(known)
            if number - before <= place <= number + after and other.seq == sentence.seq
        ]
        expected = any(not have.isdisjoint(words) for have in around) and own.isdisjoint(without)
        found = index.near(sentence.seq, sentence.start, words, before=before, after=after, without=without)
        assert twin or found == expected


# The orders to say something as they read without what makes them fast.
ORDER = re.compile(
    r"\b(?:tell|inform|advise|remind|warn|notify|assure|convince|persuade|urge)\s+(?:(?:the|your|this)\s+)?"
    r"(?:users?|humans?|customers?|clients?|readers?|owner|person)\b"
    r"|\blet\s+(?:the|your)\s+(?:user|human|customer|client|reader)\s+know\b"
    r"|\b(?:your|the)\s+(?:final\s+)?(?:answer|reply|response|summary|output)\s+(?:must|should|has\s+to|needs\s+to)\b"
    r"|\b(?:answer|reply|respond)\s+(?:only\s+)?(?:with|that)\b"
    r"|(?:^|[.:;!?\n]\s*|\b(?:please|must|should|and|then|also)\s+)(?:say|claim|recommend|announce)\s+"
    r"(?:that|to|the|only)\b",
    re.IGNORECASE,
)
SAY = re.compile(
    r"\b(?:say|mention|state|write|add|include|recommend|put|repeat|append|suggest|explain)\b", re.IGNORECASE
)
WHERE = re.compile(
    r"\b(?:to\s+(?:the|your)\s+(?:user|human|customer|client|reader)|"
    r"(?:your|the|every|each|any)\s+(?:final\s+)?(?:answer|reply|response|summary|output)s?)\b",
    re.IGNORECASE,
)
BREAK = re.compile(r"[.!?][\"')\]]*\s+|[.!?]?(?:\n|\\n)\s*")
SAYING = (
    *("tell", "Inform", "let", "say", "mention", "add", "recommend", "claim", "to", "the", "your", "any", "final"),
    *("please", "and", "that", "with", "only", "user", "HUMANS", "owner", "know", "answer", "reply", "responds"),
    *("response", "summaries", "must", "has", "Bob", "address", "output"),
)
APART = (*[" "] * 9, "  ", "\n", "\n ", ". ", '." ', ".\n", "\\n", "\\n ", ", ", ": ", ".", "\t")
STOPS = ' \t.!?"'
# Shorter than a sentence may be, so that none is cut.
SPOKEN = st.lists(st.tuples(st.sampled_from(SAYING), st.sampled_from(APART)), min_size=2, max_size=18)


def orders(sentence: str) -> bool:
    places = [found.start() for found in WHERE.finditer(sentence)]
    return bool(ORDER.search(sentence)) or any(SAY.search(sentence, max(0, at - 100), at) for at in places)


@settings(unhurried, max_examples=300)
@given(SPOKEN)
def test_the_sentences_that_order_to_say_something_are_held_and_where_there_is_none_none(
    spoken: Sequence[tuple[str, str]],
) -> None:
    text = "".join(word + apart for word, apart in spoken)
    answers = Answers()
    answers.distrust(1, text)
    expected = {sentence.strip(STOPS) for sentence in BREAK.split(text) if orders(sentence)}
    held = {text[passage.start : passage.end].strip(STOPS) for passage in answers.orders}
    assert expected <= held
    assert bool(expected) == bool(held)


# The patterns as they read without what makes them fast.
GROUPED = re.compile(
    r"\b[A-Z]{2}[0-9]{2}(?:[ .-]{1,2}[0-9A-Z]{4}){2,7}(?:[ .-]{1,2}[0-9A-Z]{1,4})?\b"
    r"|\+[0-9]{1,4}(?:[ .-]{1,2}[0-9]{2,5}){2,6}\b",
    re.IGNORECASE,
)
NUMBERS = st.lists(st.sampled_from([*"Aa0+ .-é", "DE89", "3704", "+49", "30", " 12"]), max_size=12).map("".join)
LINKS = re.compile(r"(?:https?://|www\.)[^\s<>\"'()]+", re.IGNORECASE)
LINKED = st.lists(
    st.sampled_from(["http", "HTTPs", "http\u017f", "://", "www", "WWW", ".", "a", " ", "(", "h"]), max_size=12
)


@unhurried
@given(NUMBERS)
def test_numbers_in_groups_are_joined_and_nothing_else(text: str) -> None:
    joined = GROUPED.sub(lambda found: re.sub("[ .+-]", "", found[0]), text)
    assert words_of(text) == tuple(dict.fromkeys(re.findall(r"[^\W_]{1,64}", joined.lower())))


@unhurried
@given(LINKED.map("".join))
def test_links_are_found_in_any_case(text: str) -> None:
    found = [link.rstrip(".,:;!?") for link in LINKS.findall(text)]
    assert links(text) == (found if "://" in text or "www." in text.lower() else [])


@unhurried
@given(st.sampled_from(["a@b.example", "www.a.example", "DE89370400440532013000", "+4930123456"]), st.text(max_size=5))
def test_what_holds_a_space_is_no_address(value: str, more: str) -> None:
    assert address(value) is not None
    assert address(f"{value} {more}") is None


@unhurried
@given(
    st.lists(st.sampled_from(["abc", "Z", "0", "+", "=", "%41", "%30", "/", ".", "-", "é"]), max_size=40).map("".join)
)
def test_what_looks_random_has_16_characters_of_a_piece_in_runs_that_are_no_words(text: str) -> None:
    pieces = re.split(r"[/.@,;:?&\s]+", unquote(text))
    runs = [[run for run in re.findall(r"[A-Za-z0-9+=]+", piece) if not run.isalpha()] for piece in pieces]
    assert looks_random(text) == (len(text) >= 16 and any(len("".join(mixed)) >= 16 for mixed in runs))


@unhurried
@given(
    st.dictionaries(
        st.sampled_from(["to", "a/b", "c~", "x" * 70, "é", ""]),
        st.recursive(
            st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=6,
        ),
        max_size=5,
    )
)
def test_a_call_is_traced_at_the_places_of_its_leaves(arguments: Mapping[str, object]) -> None:
    folds = Folds.begin({Feature.MARGIN, Feature.PROVENANCE})
    call = None
    for seq, event in enumerate(
        [
            GoalStated(text="Send it.", source=Source.USER),
            ToolResultObserved(tool="read", text="Nothing.", source=Source.TOOL),
            ToolCallProposed(tool="send_file", arguments=freeze(arguments)[0], source=Source.MODEL),
        ]
    ):
        call = folds.fold(stamp(event, session="s", agent="", seq=seq, at=0.0, turn=0), {})
    assert call is not None
    whole = [origin.path for origin in call.origins or () if not origin.within]
    assert whole == [path for path, _ in leaves(arguments)]
