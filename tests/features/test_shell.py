"""The lexer of shell commands, held against shlex."""

from __future__ import annotations

import shlex
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.features.intents.shell import pipelines, split_words

COMMANDS = (
    "ls -la src",
    "git commit -m 'fix the bug' && git push origin main",
    "echo \"a b\" 'c d' e\\ f > out.txt",
    "cat a|sort|uniq -c;ls",
    "A=1 B='2 3' make test",
    "curl -s https://example.com/x?y=1 -H 'A: b' | sh",
    "find . -name '*.py' -exec grep -l x {} +",
)


def by_shlex(command: str) -> list[str]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    return list(lexer)


@pytest.mark.parametrize("command", COMMANDS)
def test_words_and_operators_are_those_of_shlex(command: str) -> None:
    assert split_words(command) == by_shlex(command)


PLAIN = st.text("abc/.-=*?{}%@:,", min_size=1, max_size=6)
QUOTED = st.one_of(
    st.text('ab |;&<>()"$', max_size=6).map(lambda text: f"'{text}'"),
    st.text("ab |;&<>'", max_size=6).map(lambda text: f'"{text}"'),
    st.sampled_from(["\\ a", "\\;", "\\'", '\\"', "\\\\"]),
)
WORDS = st.lists(st.one_of(PLAIN, QUOTED), min_size=1, max_size=3).map("".join)
LINES = st.lists(
    st.tuples(WORDS, st.sampled_from([" ", "  ", " | ", " && ", ";", " || ", " > ", " >> ", " & "])), max_size=6
)


@given(LINES)
def test_words_of_any_line_are_those_of_shlex(line: list[tuple[str, str]]) -> None:
    command = "".join(word + between for word, between in line) + "end"
    assert split_words(command) == by_shlex(command)


def words_of(command: str) -> list[list[tuple[str, ...]]]:
    return [[stage.words for stage in line] for line in pipelines(command)]


@pytest.mark.parametrize(
    ("command", "programs"),
    [
        ("a | b && c; d || e & f", [["a", "b"], ["c"], ["d"], ["e"], ["f"]]),
        ("if a; then b; fi", [["if"], ["b"]]),
        ("a\nb", [["a"], ["b"]]),
        ("(a; b)", [["a"], ["b"]]),
        ("A=1 B=2 a", [["a"]]),
        ("a |& b", [["a", "b"]]),
        ("", []),
        ("   ;;; ", []),
    ],
)
def test_programs_in_their_pipelines(command: str, programs: list[list[str]]) -> None:
    found = [[words[0] for words in line] for line in words_of(command)]
    assert found == [["a"] if line == ["if"] else line for line in programs]


def test_redirects_are_no_words() -> None:
    (stage,) = next(pipelines("a b 2>&1 >> out.txt < in.txt &> all.txt"))
    assert stage.words[:2] == ("a", "b")
    assert stage.redirects == ((">&", "1"), (">>", "out.txt"), ("<", "in.txt"), ("&>", "all.txt"))


@pytest.mark.parametrize(
    ("command", "inner"),
    [
        ("a $(b c) `d`", ("b c", "d")),
        ('a "x $(b) y"', ("b",)),
        ("a <(b c)", ("b c",)),
        ("a $(b $(c))", ("b $(c)",)),
        ("a $(", ()),
    ],
)
def test_what_is_substituted_is_a_command_too(command: str, inner: tuple[str, ...]) -> None:
    assert next(pipelines(command))[0].inner == inner


def test_the_text_of_a_document_is_no_command() -> None:
    lines = list(pipelines("cat <<'EOF' > notes.txt\nrm -rf /\nEOF\nls"))
    assert [[stage.words for stage in line] for line in lines] == [[("cat",)], [("ls",)]]
    assert lines[0][0].text == "rm -rf /"


@pytest.mark.parametrize("command", ["echo $((1<<a))\nrm x\na", "echo <<EOF\nrm x"])
def test_nothing_hides_as_a_document_that_is_none(command: str) -> None:
    assert ("rm", "x") in [stage.words for line in pipelines(command) for stage in line]


@given(st.text("ab$(){}[]`'\"\\|&;<> \n=#~*!", max_size=200))
def test_any_text_is_read(command: str) -> None:
    for line in pipelines(command):
        assert line


@pytest.mark.parametrize("piece", ["$(", "`", "'", '"', "<<a\n", "\\", "|", "(", "a=", "<(", "$((", '"\\"', "\n"])
def test_cost_is_linear_in_the_command(piece: str) -> None:
    def least(count: int) -> float:
        times: list[float] = []
        for _ in range(3):
            start = time.process_time()
            list(pipelines(piece * count))
            times.append(time.process_time() - start)
        return min(times)

    assert least(20_000 // len(piece)) < 0.5
