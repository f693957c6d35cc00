"""The options of a command line: which value stands behind which, and what curl and wget mean by them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from theodolite.features.intents.programs import UPLOADS
from theodolite.features.intents.tables import table

__all__ = ("CARRIES", "SAVES", "VALUED", "after", "contained", "inputs", "pairs", "remote", "uploads")

# Options of curl and wget: those that name where the answer goes, and those whose value is no address.
SAVES = frozenset({"-o", "-O", "--output", "--output-document"})
VALUED = table(
    """
    -H --header -A --user-agent -e --referer -u --user -b --cookie -c --cookie-jar -x --proxy -m --max-time -w
    --write-out -X --request --method --retry --connect-timeout -P --directory-prefix -U --cert --key --cacert -t -T
    """
)
# Of these, the options whose value goes along with a question.
CARRIES = frozenset({"-H", "--header", "-A", "--user-agent", "-e", "--referer", "-b", "--cookie", "-u", "--user"})
_ATTACHED = frozenset("dFTXHoAeubcxmw")


def pairs(args: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the values of a command line, each with the option before it, or with the empty text."""
    option = ""
    for arg in args:
        if not arg.startswith("-") or arg == "-":
            yield option, arg
            option = ""
        elif arg.startswith("--") and "=" in arg:
            name, _, value = arg.partition("=")
            yield name, value
        elif len(arg) > 2 and arg[1] != "-" and arg[1] in _ATTACHED:  # noqa: PLR2004 - a dash, a letter, and the value
            yield arg[:2], arg[2:]
        else:
            option = arg


def uploads(args: Sequence[str]) -> bool:
    """Whether the options of curl or wget send something."""
    method = (after(args, "-X", "--request", "--method") or "").upper()
    attached = any(arg.upper().startswith(("-XPOST", "-XPUT", "-XPATCH", "--REQUEST=P", "--METHOD=P")) for arg in args)
    return method in {"POST", "PUT", "PATCH"} or attached or any(arg.startswith(UPLOADS) for arg in args)


def after(args: Sequence[str], *options: str) -> str | None:
    """Return the argument behind the first of some options, or None."""
    for place, arg in enumerate(args[:-1]):
        if arg in options:
            return args[place + 1]
    return None


# Programs that take a pattern or a program before their files: the letters of options that give it elsewhere, and of
# options that take some other value. By the manuals of GNU grep, ripgrep, gawk, jq and sed.
_GREP = ("ef", "ABCmdgtj")
_PROGRAMMED: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "rg", "ag", "ack", "ugrep"), _GREP),
    **dict.fromkeys(("awk", "gawk"), ("f", "Fv")),
    **dict.fromkeys(("jq", "yq"), ("f", "L")),
    "sed": ("ef", "l"),
}
_GIVEN = table("--regexp --file --expression --from-file")
# How many words a long option takes with it where it has no equals sign.
_TAKES: Mapping[str, int] = {
    **dict.fromkeys(("--regexp", "--expression", "--file", "--from-file", "--indent", "--line-length"), 1),
    **dict.fromkeys(("--glob", "--iglob", "--type", "--include", "--exclude", "--exclude-dir", "--max-count"), 1),
    **dict.fromkeys(("--context", "--after-context", "--before-context", "--max-depth", "--threads"), 1),
    **dict.fromkeys(("--arg", "--argjson", "--rawfile", "--slurpfile"), 2),
}
_FILE_OPTIONS = ("--file", "--from-file", "--rawfile", "--slurpfile")


def inputs(name: str, args: Sequence[str]) -> Sequence[str]:
    """Return what a program reads of its arguments: of grep, awk, jq and sed neither the pattern nor the program.

    >>> inputs("grep", ["-rn", "credentials", "src"]), inputs("rg", ["-e", "x", ".env"]), inputs("cat", ["-n", "x"])
    (['src'], ['.env'], ['-n', 'x'])
    """
    letters = _PROGRAMMED.get(name)
    if letters is None:
        return args
    given, valued = letters
    files: list[str] = []
    read: list[str] = []
    told, option, left = False, "", 0
    for arg in args:
        if left:
            left -= 1
            if not left and (option in _FILE_OPTIONS or (option[1] != "-" and option[-1] == "f")):
                read.append(arg)
        elif arg.startswith("-") and arg != "-":
            option = arg
            short = "" if arg.startswith("--") else arg[-1]
            told = told or _gives(arg, given)
            left = _TAKES.get(arg, 0) or int(bool(short) and short in given + valued)
        else:
            files.append(arg)
    return read + (files if told else files[1:])


def _gives(option: str, given: str) -> bool:
    if option.startswith("--"):
        return option.partition("=")[0] in _GIVEN
    return option[1] in given or option[-1] in given


# Options of ssh, and of the engines of containers, that take the next word with them: by their manuals.
_SSH = table("-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -P -p -Q -R -S -W -w")
_ENGINE = table(
    """
    -v -e -p -w -u -h -l -m -c -n -f --volume --env --publish --workdir --user --name --network --net --mount
    --entrypoint --env-file --label --hostname --memory --cpus --platform --restart --gpus --device --add-host --ipc
    --pid --security-opt --cap-add --cap-drop --shm-size --ulimit --tmpfs --volumes-from --namespace --container
    --context --pull --runtime --userns --cgroupns --link --dns --expose
    """
)


def remote(args: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the host that ssh is given, and the words of the command that is run there.

    >>> remote(["-p", "22", "-i", "key", "eve@host.example", "-v", "ls", "-l"])
    ('eve@host.example', ['ls', '-l'])
    """
    place = _first(args, _SSH)
    behind = args[place + 1 :]
    return (args[place] if place < len(args) else ""), behind[_first(behind, _SSH) :]


def contained(args: Sequence[str]) -> Sequence[str]:
    """Return the words of the program that docker, kubectl and their kind are told to run in a container.

    >>> contained(["run", "--rm", "-v", "a:b", "alpine", "cat", "-n", "x"]), contained(["ps"])
    (['cat', '-n', 'x'], [])
    """
    verb = next((place for place, arg in enumerate(args) if arg in {"exec", "run"}), len(args))
    rest = args[verb + 1 :]
    if "--" in rest:
        return rest[rest.index("--") + 1 :]
    behind = rest[_first(rest, _ENGINE) + 1 :]
    entry = after(rest, "--entrypoint")
    return [entry, *behind] if entry else behind


def _first(args: Sequence[str], valued: Collection[str]) -> int:
    """Return the place of the first word that is neither an option nor the value of one."""
    place = 0
    while place < len(args) and args[place].startswith("-"):
        word = args[place]
        takes = word in valued or (word[1:2] != "-" and f"-{word[-1]}" in valued)
        place += 2 if takes else 1
    return place
