"""What a shell command does: the programs that it runs, what they read and write, and what leaves the machine.

Limits. What a program does with its arguments is known for some two hundred programs, by their names; of others the
URLs and paths among their arguments are seen and no more. Nested commands are read four levels deep.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from theodolite.core.intent import DataFlow, DestinationKind, Operation, TargetKind
from theodolite.features.intents.addresses import mail_domain
from theodolite.features.intents.code import read_code
from theodolite.features.intents.options import SAVES, VALUED, after, pairs, uploads
from theodolite.features.intents.paths import looks_like_path, path_of
from theodolite.features.intents.places import Places
from theodolite.features.intents.programs import (
    FREE_OPTIONS,
    INSTALLS,
    TESTS,
    UPLOADS,
    WRAPPERS,
    Program,
    kind_of,
    program_name,
)
from theodolite.features.intents.shell import Stage, pipelines
from theodolite.features.intents.tables import table

__all__ = ("Output", "read_command")

_DEPTH = 4
_VAULT_READS = table(
    "get read show find-generic-password find-internet-password kv lookup secrets view -w -L print-access-token"
)
_GIT_OUT = frozenset({"push", "send-email"})
_GIT_IN = frozenset({"clone", "fetch", "pull", "ls-remote", "submodule"})
_GIT_WRITES = table("add commit checkout switch restore reset merge rebase apply stash rm mv tag branch init")
_SENDERS = frozenset({"mail", "mailx", "sendmail", "mutt", "nc", "ncat", "netcat", "socat", "telnet"})
# Lookups of names carry what is asked for to whoever answers for the domain.
_LOOKUPS = frozenset({"dig", "nslookup", "host", "ping"})


class Output(NamedTuple):
    """What comes out of a command: something from outside, something of this machine, what a person typed."""

    outside: bool = False
    local: bool = False
    typed: str = ""


def read_command(command: str, places: Places, depth: int = 0) -> Output:
    """Note what a command does; return what comes out of it. Linear in its length."""
    outside = local = False
    if depth >= _DEPTH:
        places.reach.does(Operation.UNKNOWN)
        return Output(outside=True, local=True)
    for line in pipelines(command):
        out = Output()
        for place, stage in enumerate(line):
            out = _Run(stage, out, places, depth, piped=place > 0).output()
        outside, local = outside or out.outside, local or out.local
    return Output(outside, local)


class _Run:
    """One program of a pipeline, with what flows into it."""

    def __init__(self, stage: Stage, fed: Output, places: Places, depth: int, *, piped: bool) -> None:
        self.stage = stage
        self.places = places
        self.depth = depth
        self.piped = piped
        within = [read_command(inner, places, depth + 1) for inner in stage.inner]
        # What is substituted in the arguments goes where the arguments go.
        self.fed = Output(
            fed.outside or any(part.outside for part in within),
            fed.local or any(part.local for part in within),
            fed.typed or stage.text,
        )

    def output(self) -> Output:
        words = _unwrapped(self.stage.words)
        out = Output()
        if words:
            name = program_name(words[0])
            kind = kind_of(name)
            if kind is Program.ENVIRONMENT and len(self.stage.words) > 1 and name == "env":
                kind = Program.QUIET  # it only sets variables for nobody
            out = _READERS.get(kind, _Run.unknown)(self, name, words[1:])
        for sign, target in self.stage.redirects:
            self._redirected(sign, target)
        return out

    def _redirected(self, sign: str, target: str) -> None:
        if ">" not in sign:
            self.places.file(target, writes=False)
        elif not (target.isdecimal() or target in {"-", "/dev/null"}):
            self.places.file(target, writes=True)
            if self.fed.outside or kind_of(program_name((self.stage.words or ("",))[0])) is Program.FETCHES:
                self.places.reach.downloads.append(path_of(target).name)

    def unknown(self, name: str, args: Sequence[str]) -> Output:
        """Read the arguments of a program that is in no table; it may itself be a file that was written or fetched."""
        self.places.runs(path_of(name).name)
        self._named(args, writes=False)
        return Output(self.fed.outside, local=True)

    def quiet(self, name: str, args: Sequence[str]) -> Output:
        del name
        self._named(args, writes=False)
        return Output()

    def echo(self, name: str, args: Sequence[str]) -> Output:
        del name
        return Output(self.fed.outside, self.fed.local, " ".join(args))

    def reads(self, name: str, args: Sequence[str]) -> Output:
        del name
        self.places.reach.does(Operation.FILE_READ)
        self._files(args, writes=False)
        return Output(self.fed.outside, local=not self.piped or self.fed.local, typed=self.fed.typed)

    def finds(self, name: str, args: Sequence[str]) -> Output:
        self.places.reach.does(Operation.SEARCH)
        self._files(args, writes=False)
        nested = next((place for place, word in enumerate(args) if word in {"-exec", "-execdir", "-ok", "-x"}), None)
        if name in {"find", "fd"} and nested is not None:
            self._nested([word for word in args[nested + 1 :] if word not in {"{}", ";", "+", "\\;"}])
        return Output(self.fed.outside, local=True)

    def writes(self, name: str, args: Sequence[str]) -> Output:
        reach = self.places.reach
        if name == "sed" and not any(arg.startswith(("-i", "--in-place")) for arg in args):
            return self.reads(name, args)
        reach.does(Operation.FILE_WRITE)
        reach.flows(DataFlow.LOCAL_TO_LOCAL)
        if name in {"crontab", "at", "systemctl", "launchctl", "schtasks", "reg", "sysctl", "visudo", "useradd"}:
            reach.touches(TargetKind.SYSTEM_PATH)
            reach.outside = True
        self._files(args, writes=True)
        return Output(self.fed.outside, self.fed.local, self.fed.typed if name == "tee" else "")

    def copies(self, name: str, args: Sequence[str]) -> Output:
        del name
        reach = self.places.reach
        reach.does(Operation.FILE_WRITE)
        reach.flows(DataFlow.LOCAL_TO_LOCAL)
        names = [arg for arg in args if not arg.startswith("-")]
        for arg in names[:-1]:
            self.places.file(arg, writes=False)
        for arg in names[-1:]:
            self.places.file(arg, writes=True)
        return Output()

    def fetches(self, name: str, args: Sequence[str]) -> Output:
        reach = self.places.reach
        sends = self.fed.local or uploads(args)
        reach.does(Operation.NETWORK_REQUEST)
        for option, value in pairs(args):
            if option in SAVES and not (name == "curl" and option == "-O"):
                self.places.file(value, writes=True)
                reach.downloads.append(path_of(value).name)
            elif option in {"--unix-socket", "--abstract-unix-socket"}:
                self.places.file(value, writes=False)
            elif option.startswith(UPLOADS):
                self._sent(value)
            elif option not in VALUED:
                self.places.url(value, sends=sends)
                reach.downloads.append(path_of(value.partition("?")[0]).name)
        return Output(outside=True)

    def _sent(self, value: str) -> None:
        name, at, path = value.partition("@")
        if at and (not name or name.endswith("=")):
            self.places.file(path, writes=False)
        elif not at and looks_like_path(value):
            self.places.file(value, writes=False)

    def talks(self, name: str, args: Sequence[str]) -> Output:
        reach = self.places.reach
        reach.does(Operation.NETWORK_REQUEST)
        sends = (
            self.fed.local
            or (name in _SENDERS and bool(self.stage.redirects))
            or (name in _LOOKUPS and bool(self.stage.inner))
        )
        hosts = [arg for arg in args if not arg.startswith("-") and not arg.isdecimal()]
        for host in hosts[: 1 if name in {"ssh", "telnet", "nc", "ncat", "netcat"} else 4]:
            self.places.host(host.rpartition("@")[2] if name != "mail" else mail_domain(host), sends=sends)
        if name == "ssh":
            return Output(outside=True)
        return Output(outside=name not in _LOOKUPS)

    def transfers(self, name: str, args: Sequence[str]) -> Output:
        """Copy to or from elsewhere: the last argument is where to."""
        reach = self.places.reach
        names = [arg for arg in args if not arg.startswith("-")]
        remote = [_remote(arg) for arg in names]
        if (
            name in {"gcloud", "gh", "aws", "op"}
            and not _VAULT_READS.isdisjoint(names)
            and {"token", "auth", "configure"} & set(names)
        ):
            self.places.secret()
        if all(host is None for host in remote):
            if name in {"scp", "rsync"}:
                return self.copies(name, args)
            reach.does(Operation.NETWORK_REQUEST)
            reach.sends(DestinationKind.SAME_ORIGIN)  # the account that the tool is logged in to
            self._files(args, writes=False)
            return Output(local=True)
        reach.does(Operation.NETWORK_REQUEST)
        out = remote[-1] is not None
        for arg, host in zip(names, remote, strict=True):
            if host is None:
                self.places.file(arg, writes=not out and arg is names[-1])
            elif host:
                self.places.host(host, sends=out)
            else:
                self.places.elsewhere(sends=out)
        return Output(outside=not out)

    def shell(self, name: str, args: Sequence[str]) -> Output:
        del name
        if self.fed.outside:
            self.places.shell_from_outside()
        script = after(args, "-c", "-Command", "/c", "-lc", "-ic", "-xc")
        if script is not None:
            return read_command(script, self.places, self.depth + 1)
        files = [arg for arg in args if not arg.startswith(("-", "<("))]
        for typed in filter(None, (self.fed.typed, self.stage.text)):
            self.places.executes()
            read_command(typed, self.places, self.depth + 1)
        if self.piped or "-s" in args:
            self.places.executes()
        if files and looks_like_path(files[0]) | ("." in files[0]) | ("/" in files[0]):
            self.places.file(files[0], writes=False)
            self.places.runs(path_of(files[0]).name)
        elif files:  # eval, source, busybox: what follows is a command
            self._nested(files)
        return Output(local=True)

    def interprets(self, name: str, args: Sequence[str]) -> Output:
        if self.fed.outside:
            self.places.shell_from_outside()
        code = after(args, "-c", "-e", "--eval", "-r", "-p", "-ne", "-pe")
        module = after(args, "-m")
        if module is not None:
            return _Run(
                self.stage._replace(words=(module, *args[args.index(module) + 1 :])),
                self.fed,
                self.places,
                self.depth,
                piped=self.piped,
            ).output()
        if code is not None or self.piped or self.stage.text or "-" in args:
            read_code("\n".join(filter(None, (code, self.fed.typed, self.stage.text))), self.places)
            return Output(local=True)
        files = [arg for arg in args if not arg.startswith("-")]
        if files:
            self.places.file(files[0], writes=False)
            self.places.runs(path_of(files[0]).name)
            self._named(files[1:], writes=False)
        del name
        return Output(local=True)

    def tests(self, name: str, args: Sequence[str]) -> Output:
        del name
        self.places.reach.does(Operation.TEST)
        self._files(args, writes=False)
        return Output(local=True)

    def installs(self, name: str, args: Sequence[str]) -> Output:
        names = [arg for arg in args if not arg.startswith("-")]
        if not TESTS.isdisjoint(names[:2]):
            return self.tests(name, args)
        if INSTALLS.isdisjoint(names[:2]) and name not in {"npx", "pipx"}:
            self._named(args, writes=False)
            return Output(local=True)
        reach = self.places.reach
        reach.does(Operation.PACKAGE_INSTALL)
        foreign = any("://" in arg or arg.startswith("git+") for arg in args)
        if foreign:
            reach.strange = True
            reach.flows(DataFlow.EXTERNAL_TO_SHELL)  # what is installed runs when it is installed
            for arg in args:
                if "://" in arg:
                    self.places.url(arg.partition("+")[2] if arg.startswith("git+") else arg, sends=False)
        else:
            reach.official = True  # the registry that the machine is set up for
            reach.touches(TargetKind.WORKDIR)
        return Output(local=True)

    def builds(self, name: str, args: Sequence[str]) -> Output:
        if not TESTS.isdisjoint(args):
            return self.tests(name, args)
        self._named(args, writes=False)
        self.places.reach.touches(TargetKind.WORKDIR)
        return Output(local=True)

    def environment(self, name: str, args: Sequence[str]) -> Output:
        """Show the environment: whole, or a variable whose name says that it holds a secret."""
        if name in {"set", "export", "declare"} and any(not arg.startswith("-") for arg in args):
            return Output()
        if not args or any(_SECRET_VARIABLE.search(arg) for arg in args):
            self.places.secret()
        return Output(local=True)

    def git(self, name: str, args: Sequence[str]) -> Output:
        del name
        reach = self.places.reach
        verb = next(
            (arg for arg in args if not arg.startswith("-") and "=" not in arg and not looks_like_path(arg)), ""
        )
        urls = [arg for arg in args if "://" in arg or _remote(arg)]
        reach.touches(TargetKind.WORKDIR)
        if verb in _GIT_OUT or verb in _GIT_IN:
            reach.does(Operation.NETWORK_REQUEST)
            # Without an address it goes to the remote that the repository is set up with.
            reach.sends(DestinationKind.SAME_ORIGIN, DataFlow.LOCAL_TO_EXTERNAL if verb in _GIT_OUT else DataFlow.NONE)
            for arg in urls:
                self.places.url(arg if "://" in arg else f"ssh://{arg.replace(':', '/')}", sends=verb in _GIT_OUT)
        elif verb == "grep":
            reach.does(Operation.SEARCH)
        elif verb in _GIT_WRITES:
            reach.does(Operation.FILE_WRITE)
            reach.flows(DataFlow.LOCAL_TO_LOCAL)
        else:
            reach.does(Operation.FILE_READ)
        return Output(outside=verb in _GIT_IN and bool(urls), local=True)

    def containers(self, name: str, args: Sequence[str]) -> Output:
        for arg in args:
            for part in re.split(r"[=,:]", arg) if "sock" in arg else ():
                self.places.file(part, writes=False)
            if arg.startswith("tcp://"):
                self.places.url(arg, sends=False)
            host, _, rest = arg.partition(":")
            if rest and host.startswith("/") and (host == "/" or path_of(host).target is TargetKind.SYSTEM_PATH):
                self.places.reach.touches(TargetKind.SYSTEM_PATH)
                self.places.reach.outside = True
        if name == "kubectl" and "get" in args and any(arg.startswith("secret") for arg in args):
            self.places.secret()
        if "push" in args:
            self.places.reach.does(Operation.NETWORK_REQUEST)
            self.places.reach.sends(DestinationKind.UNKNOWN, DataFlow.LOCAL_TO_EXTERNAL)
        if "exec" in args:
            self._named(args, writes=False)
        return Output(local=True)

    def vault(self, name: str, args: Sequence[str]) -> Output:
        del name
        if not _VAULT_READS.isdisjoint(args):
            self.places.secret()
        return Output(local=True)

    def _nested(self, words: Sequence[str]) -> None:
        if words and self.depth < _DEPTH:
            inner = Stage(tuple(words), (), ())
            _Run(inner, self.fed, self.places, self.depth + 1, piped=self.piped).output()

    def _files(self, args: Iterable[str], *, writes: bool) -> None:
        for arg in args:
            value = arg.rpartition("=")[2] if "=" in arg else arg
            if "://" in value:
                self.places.url(value, sends=False)
            elif value and (not value.startswith("-") or value is not arg):
                self.places.file(value, writes=writes)

    def _named(self, args: Iterable[str], *, writes: bool) -> None:
        """Read those arguments that are addresses or paths by their form."""
        for arg in args:
            value = arg.rpartition("=")[2] if "=" in arg and "://" not in arg.partition("=")[0] else arg
            if "://" in value:
                self.places.reach.does(Operation.NETWORK_REQUEST)
                self.places.url(value, sends=False)
            elif looks_like_path(value) or value.startswith(".env"):
                self.places.file(value, writes=writes)


_SECRET_VARIABLE = re.compile(r"SECRET|PASSW|TOKEN|API_?KEY|PRIVATE_KEY|CREDENTIAL", re.IGNORECASE)
_READERS: Mapping[Program, Callable[[_Run, str, Sequence[str]], Output]] = {
    Program.READS: _Run.reads,
    Program.FINDS: _Run.finds,
    Program.WRITES: _Run.writes,
    Program.COPIES: _Run.copies,
    Program.FETCHES: _Run.fetches,
    Program.TALKS: _Run.talks,
    Program.TRANSFERS: _Run.transfers,
    Program.SHELL: _Run.shell,
    Program.INTERPRETER: _Run.interprets,
    Program.TESTS: _Run.tests,
    Program.INSTALLS: _Run.installs,
    Program.BUILDS: _Run.builds,
    Program.ENVIRONMENT: _Run.environment,
    Program.GIT: _Run.git,
    Program.CONTAINERS: _Run.containers,
    Program.VAULT: _Run.vault,
    Program.ECHO: _Run.echo,
    Program.QUIET: _Run.quiet,
}


def _unwrapped(words: Sequence[str]) -> Sequence[str]:
    """Return the words of the program that is run in the end."""
    for _ in range(8):  # wrappers around wrappers; nobody stacks more
        if not words or program_name(words[0]) not in WRAPPERS:
            return words
        wrapper, rest = program_name(words[0]), list(words[1:])
        while rest and (
            rest[0].startswith("-") or _ASSIGNED.match(rest[0]) or rest[0].replace(".", "").rstrip("smhd").isdecimal()
        ):
            option = rest.pop(0)
            if option in FREE_OPTIONS and rest and not rest[0].startswith("-") and wrapper != "env":
                rest.pop(0)
        if not rest:
            return words if wrapper == "env" else ()
        words = rest
    return words


_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")
_REMOTE = re.compile(r"(?:[\w.-]+@)?([\w.-]+|\[[0-9a-f:]+\]):(?![/\\]{2})(?=.)")
_BUCKET = re.compile(r"(?:s3|gs|az|azure|r2|oss|b2)://")


def _remote(arg: str) -> str | None:
    """Return the host of `user@host:path`, or of a bucket; None for what is on this machine."""
    if _BUCKET.match(arg):
        return ""
    found = _REMOTE.match(arg)
    return found[1] if found is not None and len(found[1]) > 1 else None
