r"""Shell commands, taken apart into the programs that they run: pipes, redirects, substitutions, wrappers.

The lexer follows POSIX (Shell Command Language, section 2.3) as far as words, quotes and operators go. The standard
library's shlex gives the same words and takes 10 to 30 µs for an ordinary line, where this takes 2; tests hold the one
against the other. Nothing is expanded or run.

Limits. Variables are not followed, and neither are functions, loops and aliases: their bodies are read as if they ran
once. Of a command 16,384 characters are read from its start and as many from its end, 4,096 words in all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from theodolite.features.intents.tables import table

__all__ = ("Stage", "pipelines", "split_words", "unquoted")

_MOST = 16_384
_TOKENS = 4_096

# A word is a run of plain characters, quoted parts, escapes and substitutions; operators stand by themselves.
_TOKEN = re.compile(
    r"""(?P<word>(?:
          [^\s'"\\|&;<>()`]+
        | '[^']*'
        | "(?:[^"\\]|\\.)*"
        | \\.
        | `[^`]*`
        | (?<=\$)\((?:[^()]|\([^()]*\))*\)
        | ['"\\`]                                 # a quote that nobody closes
        )+)
      | (?P<redirect>&>>?|>>|>\||>&|<&|<<<|<<-?|<>|[<>](?!\())
      | (?P<process>[<>]\((?:[^()]|\([^()]*\))*\))
      | (?P<control>\|\||&&|\|&|;;|[|&;()\n])
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTED = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)|(['"\\])""", re.DOTALL)
_IN_QUOTES = re.compile(r'\\([$`"\\\n])')
_HEREDOC = re.compile(
    r"<<-?[ \t]*(['\"]?)([A-Za-z_]\w*)\1(?P<rest>[^\n]*)\n(?P<body>.*?)\n[ \t]*\2(?=\n|\Z)", re.DOTALL
)
# More than these in one command are no documents but an attempt to be expensive.
_DOCUMENTS = 16
_SUBSTITUTED = re.compile(r"\$\(((?:[^()]|\([^()]*\))*)\)|`([^`]*)`|[<>]\(((?:[^()]|\([^()]*\))*)\)", re.DOTALL)
_ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=")
# Words that only say how what follows is run: POSIX's reserved words.
_RESERVED = table("then do else elif if while until ! { } fi done time coproc")


class Stage(NamedTuple):
    """One program of a pipeline: its words without quotes, its redirects, and what is substituted in it.

    `inner` are commands whose output is put into this one. `text` is what a here-document or here-string feeds it.
    `assigned` are the variables that are set before it, each `name=value`.
    """

    words: tuple[str, ...]
    redirects: tuple[tuple[str, str], ...]
    inner: tuple[str, ...]
    text: str = ""
    assigned: tuple[str, ...] = ()


def pipelines(command: str) -> Iterator[tuple[Stage, ...]]:
    """Yield the pipelines of a command, each with its stages in order. Linear in the text that is read.

    >>> [[stage.words for stage in line] for line in pipelines("A=1 cat 'my file' | wc -l && rm x")]
    [[('cat', 'my file'), ('wc', '-l')], [('rm', 'x')]]
    """
    if len(command) > 2 * _MOST:
        command = f"{command[:_MOST]}\n{command[-_MOST:]}"
    bodies: list[str] = []

    def keep(found: re.Match[str]) -> str:
        bodies.append(found["body"])
        return f"<<{len(bodies) - 1}{found['rest']}\n"

    # In arithmetic, `((`, two such signs are a shift.
    documents = 0 < command.count("<<") <= _DOCUMENTS and "((" not in command
    text = _HEREDOC.sub(keep, command) if documents else command
    line: list[Stage] = []
    stage = _Open()
    for count, found in enumerate(_TOKEN.finditer(text)):
        if count > _TOKENS:
            break
        control = found["control"]
        if control is None:
            stage.take(found, bodies)
            continue
        line += stage.close()
        stage = _Open()
        if control not in {"|", "|&"} and line:
            yield tuple(line)
            line = []
    line += stage.close()
    if line:
        yield tuple(line)


class _Open:
    """A stage that is being read."""

    __slots__ = ("assigned", "inner", "pending", "redirects", "text", "words")

    def __init__(self) -> None:
        self.words: list[str] = []
        self.redirects: list[tuple[str, str]] = []
        self.inner: list[str] = []
        self.assigned: list[str] = []
        self.text = ""
        self.pending = ""

    def take(self, found: re.Match[str], bodies: list[str]) -> None:
        raw = found[0]
        if "(" in raw or "`" in raw:
            self.inner += [part[part.lastindex or 0] for part in _SUBSTITUTED.finditer(raw)]
        if found["redirect"] is not None:
            self.pending = raw
            return
        word = unquoted(raw)
        if self.pending:
            self._redirected(word, bodies)
        elif not self.words and _ASSIGNED.match(raw):
            self.assigned.append(word)
        elif self.words or word not in _RESERVED:
            self.words.append(word)

    def _redirected(self, word: str, bodies: list[str]) -> None:
        if self.pending.startswith("<<"):
            number = int(word) if word.isdecimal() and len(word) <= 3 else len(bodies)  # noqa: PLR2004 - our own number
            self.text = bodies[number] if self.pending != "<<<" and number < len(bodies) else word
        else:
            self.redirects.append((self.pending, word))
        self.pending = ""

    def close(self) -> list[Stage]:
        if not (self.words or self.redirects or self.inner or self.assigned):
            return []
        return [Stage(tuple(self.words), tuple(self.redirects), tuple(self.inner), self.text, tuple(self.assigned))]


def unquoted(raw: str) -> str:
    r"""Return a word without its quotes, as POSIX removes them.

    >>> print(unquoted("a'b c'" + r'"d\$e"\ f'))
    ab cd$e f
    """
    if "'" not in raw and '"' not in raw and "\\" not in raw:
        return raw
    return _QUOTED.sub(_plain, raw)


def _plain(found: re.Match[str]) -> str:
    single, double, escaped, _ = found.groups()
    if single is not None:
        return single
    if double is not None:
        return _IN_QUOTES.sub(r"\1", double)
    return "" if escaped == "\n" or escaped is None else escaped


def split_words(command: str) -> list[str]:
    """Return the words and operators of a command, in order, without quotes; what shlex gives.

    >>> split_words("cat a|sort > 'b c'")
    ['cat', 'a', '|', 'sort', '>', 'b c']
    """
    return [unquoted(found[0]) for found in _TOKEN.finditer(command[:_MOST])]
