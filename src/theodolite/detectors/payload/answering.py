"""What a model is told whose call did not fit: names, places and types, and what would help. Never a value of the call.

Names are the call's own words and may be hostile: they are quoted, cut to 64 characters, and spelled out where they are
not plain ASCII.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from theodolite.core.contract import Divergence, Kind
from theodolite.core.text import inert
from theodolite.detectors.payload.naming import nearest
from theodolite.detectors.payload.repair import Op, Plan, Step

__all__ = ("message", "reason", "unknown")

# What a message shows: characters of a name, of all, and findings (our choice: what a model needs for its next try).
SHOWN, WHOLE, TOLD = 64, 1_200, 8


def message(divergences: Sequence[Divergence], found: Plan | None = None, mending: Sequence[Step] = ()) -> str:
    """Return what a model needs to try again: where its call does not fit, what is due there, and what would help.

    `found` is the plan, and `mending` what helps where there is none (`repair.mending`).

    At most 1,200 characters, of findings the first eight. No value of the call is in it. Names are the call's own words
    and may be hostile: they are quoted, cut to 64 characters, and spelled out where they are not plain ASCII.

    >>> from theodolite.core.contract import Kind
    >>> wrong = Divergence(kind=Kind.TYPE_MISMATCH, pointer="/age", expected="integer", observed="string")
    >>> print(message([wrong], Plan((Step(Op.COERCE, "/age", "integer"),))))
    The call was not made: its arguments do not fit the contract of the tool.
    - "/age": type_mismatch: integer is due, this is string
    What would fit, if it is what you mean:
    - give "/age" as integer
    Change the arguments and call again.
    """
    wrong = [one for one in divergences if one.denies]
    lines = ["The call was not made: its arguments do not fit the contract of the tool."]
    lines += [_told(one) for one in wrong[:TOLD]]
    if len(wrong) > TOLD:
        lines.append(f"- and {len(wrong) - TOLD} more")
    if found is not None and found.steps:
        lines += ["What would fit, if it is what you mean:", *_advice(found.steps)]
    elif mending:
        lines += [
            "What would mend a part of it, if it is what you mean, and is not enough by itself:",
            *_advice(mending),
        ]
    last = "Change the arguments and call again."
    text = "\n".join(lines)
    room = WHOLE - len(last) - 1
    return f"{text if len(text) <= room else text[: room - 4].rpartition(chr(10))[0] + chr(10) + '...'}\n{last}"


def reason(one: Divergence) -> str:
    """Return why a place does not fit, in the words of the contract and in types, on one line of plain ASCII.

    >>> from theodolite.core.contract import Kind
    >>> reason(Divergence(kind=Kind.MISSING_REQUIRED, pointer="/a", expected="present", observed="absent"))
    'it must be there'
    """
    if not one.denies and one.kind in _PASSING:
        return _PASSING[one.kind]
    if one.expected in {"present", "absent"}:
        return "it must be there" if one.expected == "present" else "it must not be there"
    due = f"{_words(one.expected)} is due" if one.expected else ""
    this = f"this is {_words(one.observed)}" if one.observed else ""
    return ", ".join(filter(None, (due, this))) or "it does not fit"


# What is told of a place that passes all the same.
_PASSING = {
    Kind.UNDECLARED_FIELD: "it is not declared, and may be ignored",
    Kind.READ_ONLY_SENT: "it is read-only, and should not be sent",
}


def unknown(name: object, known: Iterable[str]) -> str:
    """Return what a model needs that called for what no contract has: the nearest names, or else the first five.

    At most 1,200 characters. What was called for stands in it no more than a value does. Cost: some 10 us for each name
    that is known.

    >>> print(unknown("creatUser", ["createUser", "deleteTeam"]))
    The call was not made: there is no tool or operation of that name.
    Did you mean "createUser"?
    Change the name and call again.
    """
    names = list(known)
    offered, near = nearest(name, names)
    listed = ", ".join(map(_quoted, offered))
    more = f", and {len(names) - len(offered)} more" if len(names) > len(offered) else ""
    hint = f"Did you mean {listed}?" if near else f"There is {listed}{more}." if names else "There is none."
    return (
        f"The call was not made: there is no tool or operation of that name.\n{hint}\nChange the name and call again."
    )


def _told(one: Divergence) -> str:
    return f"- {_quoted(one.pointer)}: {one.kind}: {reason(one)}"


def _advice(steps: Sequence[Step]) -> Iterator[str]:
    inside = 0
    unwrapped: list[str] = []
    for step in steps:
        if any(step.pointer.startswith(f"{pointer}/") for pointer in unwrapped):
            inside += 1  # its names were inside a value of the call
            continue
        where = _quoted(step.pointer)
        if step.op is Op.UNWRAP:
            unwrapped.append(step.pointer)
        yield {
            Op.RENAME: f"- rename {where} to {_quoted(step.to)}",
            Op.UNWRAP: f"- give {where} as {_words(step.to)}, not as text that holds one",
            Op.COERCE: f"- give {where} as {_words(step.to)}",
            Op.DROP: f"- leave out {where}",
            Op.FILL: f"- give {where}, such as the default {_words(step.to)}",
        }[step.op]
    if inside:
        yield f"- and {inside} more inside of what was text"


def _quoted(text: str) -> str:
    return f'"{_plain(text)}"' if text else "the arguments as a whole"


def _plain(text: str) -> str:
    """Return a name in printable ASCII, without quotes and backslashes of its own, of about 64 characters."""
    return _cut(text, text[:SHOWN].encode("unicode_escape").decode("ascii").replace('"', "'").replace("`", "'"))


def _words(text: str) -> str:
    r"""Return the contract's own words as they stand, in printable ASCII, of about 64 characters.

    Backslashes and quotes are not doubled: a pattern is to be read as it was written. What is spelled out, so that
    nothing comes out of a block of code, means the same in a pattern and in JSON.
    """
    return _cut(text, "".join([_word(char) for char in text[:SHOWN]]))


def _word(char: str) -> str:
    if char == "`":
        return r"\u0060"
    return char if " " <= char <= "~" else char.encode("unicode_escape").decode("ascii")


def _cut(text: str, shown: str) -> str:
    shown = inert(shown)  # a log of a CI system may get to see it, too
    return shown if len(text) <= SHOWN and len(shown) <= 2 * SHOWN else f"{shown[: 2 * SHOWN]}..."
