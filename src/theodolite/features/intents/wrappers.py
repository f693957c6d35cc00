"""Programs that run another program: which one it is in the end, by the words of the whole.

Limits. Of wrappers that take a folder or file first, such as chroot, that is taken for the program.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from theodolite.features.intents.options import after
from theodolite.features.intents.programs import FREE_OPTIONS, WRAPPERS, program_name

__all__ = ("unwrapped",)

_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")
# These hand a whole command line to a shell: as the value of -c, or as their own words.
_SPEAKERS = frozenset({"su", "runuser", "script", "flock"})
_JOINERS = frozenset({"watch", "parallel", "env"})
# Among how many words the -c is looked for. Our choice: nobody writes more options before it.
_NEAR = 16


def unwrapped(words: Sequence[str], typed: str = "") -> Sequence[str]:
    """Return the words of the program that is run in the end; `typed` is what xargs would read. Linear in the words.

    >>> unwrapped(("sudo", "-u", "root", "timeout", "5", "ls", "-l")), unwrapped(("su", "-c", "ls -l"))
    (('ls', '-l'), ('sh', '-c', 'ls -l'))
    """
    place, fed = 0, False
    while place < len(words):
        wrapper = program_name(words[place])
        if wrapper not in WRAPPERS:
            break
        if wrapper in _SPEAKERS:
            line = after(words[place + 1 : place + _NEAR], "-c", "-lc", "--command", "--session-command")
            if line is not None:
                return ("sh", "-c", line)
        fed = fed or wrapper == "xargs"
        begin = _behind_options(words, place + 1, wrapper)
        if begin >= len(words):
            return words[place:] if wrapper == "env" else ()
        if wrapper in _JOINERS and " " in words[begin]:
            return ("sh", "-c", " ".join(words[begin:]))
        place = begin
    return _with_input(words, place, typed.split()) if fed and typed else words[place:]


def _behind_options(words: Sequence[str], place: int, wrapper: str) -> int:
    while place < len(words):
        word = words[place]
        if not (word.startswith("-") or _ASSIGNED.match(word) or word.replace(".", "").rstrip("smhd").isdecimal()):
            break
        place += 1
        takes = word in FREE_OPTIONS and wrapper != "env"
        if takes and place < len(words) and not words[place].startswith("-"):
            place += 1
    return place


def _with_input(words: Sequence[str], place: int, typed: Sequence[str]) -> Sequence[str]:
    """Return the words of a program as xargs completes them: at its placeholder, or behind the others."""
    attached = next((word[2:] for word in words[:place] if word.startswith("-I") and len(word) > len("-I")), None)
    mark = attached or after(words[:place], "-I", "--replace")
    if mark and typed:
        return [word.replace(mark, typed[0]) for word in words[place:]]
    return [*words[place:], *typed]
