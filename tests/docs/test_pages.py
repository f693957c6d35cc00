"""Every page says what is true: its code blocks run, its links lead somewhere, and it can be reached.

A block runs in a copy of the tree, without what git ignores, after the blocks above it on its page and in the folder
that they changed into. What happens depends on its language:

- `bash` runs as a script; `console` runs each line after `$ ` and compares what it prints (`...` stands for anything);
- `python` and `pycon` run in one interpreter per page, `pycon` as a doctest;
- `toml` is read as a configuration, `json` and `jsonl` are parsed; `text` is only shown.

A comment on the line above may say `<!-- exits 1 -->`, `<!-- file: NAME -->` (the block is the content of that file) or
`<!-- not run: REASON -->`.
"""

from __future__ import annotations

import doctest
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "changelog.d").glob("README.md")]
)
FENCE = re.compile(
    r"^(?P<indent> *)(?:<!-- (?P<note>[^\n]*?) -->\n\s*)?```(?P<language>[a-z]*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
NOT_RUN_AT_MOST = 12
SHOWN = {"text", "mermaid"}
DATA: dict[str, Callable[[str], object]] = {
    "toml": tomllib.loads,
    "json": json.loads,
    "jsonl": lambda text: [json.loads(line) for line in text.splitlines()],
}


class Block(NamedTuple):
    """One fenced block, with where it stands and what the comment above it says."""

    page: str
    line: int
    language: str
    text: str
    note: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def exits(self) -> int:
        return int(self.note.removeprefix("exits ")) if self.note.startswith("exits ") else 0

    @property
    def file(self) -> str | None:
        return self.note.removeprefix("file: ") if self.note.startswith("file: ") else None

    @property
    def reason(self) -> str | None:
        return self.note.removeprefix("not run: ") if self.note.startswith("not run: ") else None


def _blocks(page: str) -> Iterator[Block]:
    content = (ROOT / page).read_text(encoding="utf-8")
    for found in FENCE.finditer(content):
        line = content.count("\n", 0, found.start("text")) + 1
        text = "".join(row.removeprefix(found["indent"]) for row in found["text"].splitlines(keepends=True))
        yield Block(page, line, found["language"], text, found["note"] or "")


def _files() -> list[str]:
    """Return the files of the project: those that git has or would take, without the tests."""
    command = ("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return [name for name in listed if not name.startswith("tests/") and (ROOT / name).is_file()]


PYTHON = """
import doctest, json, sys, traceback
names = {"__name__": "__main__"}
answers, sys.stdout = sys.stdout, sys.stderr
for line in sys.stdin:
    page, number, language, text = json.loads(line)
    fault = ""
    try:
        if language == "pycon":
            test = doctest.DocTestParser().get_doctest(text, names, page, page, number - 1)
            said = []
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
            if runner.run(test, out=said.append, clear_globs=False).failed:
                fault = "".join(said)
            names.update(test.globs)
        else:
            exec(compile("\\n" * (number - 1) + text, page, "exec"), names)
    except BaseException:
        fault = traceback.format_exc()
    print(json.dumps(fault), file=answers, flush=True)
"""


class Desk:
    """A copy of the tree in which one page is worked through."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "theodolite"
        for name in _files():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.folder / name)
        self.left = folder / "left"
        # The interpreter of this test comes first, with the commands beside it; colors and widths are fixed.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self.environment = {**os.environ, "PATH": path, "NO_COLOR": "1", "COLUMNS": "120", "PYTHONWARNINGS": "error"}
        self.python: subprocess.Popen[str] | None = None

    def work(self, block: Block) -> None:
        """Do what a block says, and raise AssertionError with its place where that is not what happens."""
        if block.file:
            file = self.folder / block.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
        if block.reason or block.language in SHOWN:
            return
        if block.language == "bash":
            self._shell(block, block.text)
        elif block.language == "console":
            self._console(block)
        elif block.language in {"python", "pycon"}:
            if not block.file:
                self._interpret(block)
        else:
            assert block.language in DATA, f"{block.place}: no such language: {block.language!r}"
            DATA[block.language](block.text)

    def _shell(self, block: Block, script: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"trap 'pwd > \"$LEFT\"' EXIT\n{script}"],  # noqa: S607 - what a reader has
            cwd=self.folder,
            env={**self.environment, "LEFT": str(self.left)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == block.exits, (
            f"{block.place}: exit {done.returncode}, not {block.exits}\n{done.stdout}"
        )
        self.folder = Path(self.left.read_text(encoding="utf-8").strip())
        return done.stdout

    def _console(self, block: Block) -> None:
        commands = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
        assert not commands[0], f"{block.place}: a console block begins with '$ '"
        for command, _, wanted in (part.partition("\n") for part in commands[1:]):
            printed = self._shell(block, command)
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            assert doctest.OutputChecker().check_output(wanted, printed, flags), f"{block.place}: it prints\n{printed}"

    def _interpret(self, block: Block) -> None:
        if self.python is None:
            self.python = subprocess.Popen(
                [sys.executable, "-c", PYTHON],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self.python.stdin
        assert self.python.stdout
        self.python.stdin.write(json.dumps([block.page, block.line, block.language, block.text]) + "\n")
        self.python.stdin.flush()
        fault = msgspec.json.decode(self.python.stdout.readline(), type=str)
        assert not fault, f"{block.place}: {fault}"

    def leave(self) -> None:
        """End the interpreter of the page."""
        if self.python:
            self.python.communicate(timeout=30)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_does_what_it_says(page: str, tmp_path: Path) -> None:
    blocks = list(_blocks(page))
    if not any(block.language not in SHOWN and not block.reason for block in blocks):
        return
    desk = Desk(tmp_path)
    try:
        for block in blocks:
            desk.work(block)
    finally:
        desk.leave()


def test_few_blocks_are_not_run_and_each_has_its_reason() -> None:
    notes = [block for page in PAGES for block in _blocks(page) if block.note]
    for block in notes:
        assert block.reason or block.file or block.exits, f"{block.place}: what does <!-- {block.note} --> mean?"
    not_run = {block.place: block.reason for block in notes if block.reason}
    assert len(not_run) <= NOT_RUN_AT_MOST, not_run
    assert all(len(reason) > 10 for reason in not_run.values()), not_run


def test_every_fence_is_understood() -> None:
    for page in PAGES:
        fences = len(re.findall(r"^ *```", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE))
        assert fences == 2 * len(list(_blocks(page))), f"{page}: a fence is open, or a comment above it is malformed"


def _anchor(heading: str) -> str:
    """Return the anchor that a heading gets on code hosts."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def _links(page: str) -> Iterator[str]:
    prose = FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    for found in LINK.finditer(prose):
        if not re.match(r"https?://|mailto:", found["target"]):
            yield found["target"]


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    for target in _links(page):
        name, _, anchor = target.partition("#")
        file = (ROOT / page).parent / name if name else ROOT / page
        assert file.exists(), f"{page}: {target} does not exist"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in map(_anchor, headings), f"{page}: {target} names no heading of that page"


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = {"README.md"}, ["README.md"]
    while waiting:
        page = waiting.pop()
        for target in _links(page):
            file = ((ROOT / page).parent / target.partition("#")[0]).resolve()
            name = file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else ""
            if name in PAGES and name not in reached:
                reached.add(name)
                waiting.append(name)
    assert reached == set(PAGES), f"no link leads to {sorted(set(PAGES) - reached)}"
