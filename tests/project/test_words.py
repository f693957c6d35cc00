"""What no file of the project says: hosts of package indexes, paths of one machine, how the work was run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# One letter of each word stands in brackets, so that this file does not say it either.
FORBIDDEN = {
    "the host of a package index": r"p[y]pi\.org|python[h]osted\.org|npm[j]s\.(?:org|com)|deb[i]an\.org",
    "a path of one machine": r"(?<![\w.])/(?:w[o]rk|r[o]ot|t[m]p|o[p]t)/|\.p[y]env/",
    "a word about how the work was run": (
        r"(?i)\bsp[i]ke\b|\bse[e]ds? \d{3}\b|\biss[u]es? (?:#|no\. )?\d+\b|\b(?:house|design|style)\.m[d]\b"
        r"|\bthe l[e]ad\b|\bother h[e]lpers?\b|\bresearch/\w+\.m[d]"
    ),
}


def _files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],  # noqa: S607 - git is a stated need
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    names = listed.stdout.decode().split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_says(what: str) -> None:
    pattern = re.compile(FORBIDDEN[what])
    found = [
        f"{file.relative_to(ROOT)}:{number}: {match[0]}"
        for file in _files()
        for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if (match := pattern.search(line))
    ]
    assert not found, f"{what} stands in:\n" + "\n".join(found)


def test_the_patterns_find_what_they_are_for() -> None:
    samples = {
        "the host of a package index": "https://pypi+org/simple".replace("+", "."),
        "a path of one machine": "see |work|main".replace("|", "/"),
        "a word about how the work was run": "as the s-p-i-k-e showed".replace("-", ""),
    }
    assert all(re.search(FORBIDDEN[what], sample) for what, sample in samples.items())
    assert samples.keys() == FORBIDDEN.keys()
