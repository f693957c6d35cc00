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
from theodolite.features.intents.options import CARRIES, SAVES, VALUED, after, contained, inputs, pairs, remote, uploads
from theodolite.features.intents.paths import looks_like_path, path_of
from theodolite.features.intents.places import Places
from theodolite.features.intents.programs import INSTALLS, TESTS, UPLOADS, Program, kind_of, program_name
from theodolite.features.intents.randomness import looks_random
from theodolite.features.intents.shell import Stage, pipelines
from theodolite.features.intents.tables import table
from theodolite.features.intents.wrappers import unwrapped

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
_SOCKETS = frozenset({"socat", "nc", "ncat", "netcat"})
_EXECUTES = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-x"})
_CURL_HOSTS = frozenset({"-x", "--proxy", "--preproxy", "--resolve", "--connect-to"})
_NETWORK_DEVICE = re.compile(r"/dev/(?:tcp|udp)/([^/]+)")
# Variables that say where another program goes: Docker's and Podman's manuals, curl's.
_HOST_VARIABLES = frozenset({"docker_host", "container_host", "http_proxy", "https_proxy", "all_proxy"})
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
        return _too_deep(places)
    for line in pipelines(command):
        out = Output()
        for place, stage in enumerate(line):
            out = _Run(stage, out, places, depth, piped=place > 0).output()
        outside, local = outside or out.outside, local or out.local
    return Output(outside, local)


def _too_deep(places: Places) -> Output:
    """Note that something is run which was not read: anything may come out of it."""
    places.reach.does(Operation.UNKNOWN)
    return Output(outside=True, local=True)


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
        words = unwrapped(self.stage.words, self.fed.typed)
        out = Output()
        if words:
            name = program_name(words[0])
            kind = kind_of(name)
            if kind is Program.ENVIRONMENT and len(self.stage.words) > 1 and name == "env":
                kind = Program.QUIET  # it only sets variables for nobody
            out = _READERS.get(kind, _Run.unknown)(self, name, words[1:])
        for sign, target in self.stage.redirects:
            self._redirected(sign, target)
        for word in (*self.stage.assigned, *self.stage.words):
            if "://" in word and word.partition("=")[0].lower() in _HOST_VARIABLES:
                self.places.url(word.partition("=")[2], sends=False)
        return out

    def _redirected(self, sign: str, target: str) -> None:
        device = _NETWORK_DEVICE.match(target)
        if device is not None:  # Bash opens a connection
            self.places.reach.does(Operation.NETWORK_REQUEST)
            self.places.host(device[1], sends=">" in sign)
        elif ">" not in sign:
            self.places.file(target, writes=False)
        elif not (target.isdecimal() or target in {"-", "/dev/null"}):
            self.places.file(target, writes=True)
            if self.fed.outside or kind_of(program_name((self.stage.words or ("",))[0])) is Program.FETCHES:
                self.places.reach.downloads.append(path_of(target).name)

    def unknown(self, name: str, args: Sequence[str]) -> Output:
        """Read the arguments of a program that is in no table; it may itself be a file that was written or fetched."""
        self.places.runs(path_of(name).name)
        self._named(args)
        return Output(self.fed.outside, local=True)

    def quiet(self, name: str, args: Sequence[str]) -> Output:
        del name
        self._named(args, names=True)
        return Output()

    def echo(self, name: str, args: Sequence[str]) -> Output:
        del name
        return Output(self.fed.outside, self.fed.local, " ".join(args))

    def lists(self, name: str, args: Sequence[str]) -> Output:
        """Show what files there are: what comes out are their names."""
        del name
        self.places.reach.does(Operation.FILE_READ)
        return self._listed(args)

    def _listed(self, args: Sequence[str]) -> Output:
        names = [arg for arg in args if not arg.startswith("-")]
        for name in names:
            self.places.names(name)
        return Output(self.fed.outside, local=True, typed=" ".join(names))

    def reads(self, name: str, args: Sequence[str]) -> Output:
        self.places.reach.does(Operation.FILE_READ)
        self._files(inputs(name, args), writes=False)
        return Output(self.fed.outside, local=not self.piped or self.fed.local, typed=self.fed.typed)

    def finds(self, name: str, args: Sequence[str]) -> Output:
        self.places.reach.does(Operation.SEARCH)
        if name not in {"find", "fd"}:
            self._files(inputs(name, args), writes=False)
            return Output(self.fed.outside, local=True)
        nested = next((place for place, word in enumerate(args) if word in _EXECUTES), len(args))
        out = self._listed(args[:nested])
        inner = [word for word in args[nested + 1 :] if word not in {"{}", ";", "+", "\\;"}]
        if inner:
            self._nested([*inner, *out.typed.split()])
        return out

    def writes(self, name: str, args: Sequence[str]) -> Output:
        reach = self.places.reach
        if name == "sed" and not any(arg.startswith(("-i", "--in-place")) for arg in args):
            return self.reads(name, args)
        reach.does(Operation.FILE_WRITE)
        reach.flows(DataFlow.LOCAL_TO_LOCAL)
        if name in {"crontab", "at", "systemctl", "launchctl", "schtasks", "reg", "sysctl", "visudo", "useradd"}:
            reach.touches(TargetKind.SYSTEM_PATH)
            reach.outside = True
        self._files(inputs(name, args), writes=True)
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
            elif option.startswith(UPLOADS):
                self._sent(value)
            elif option in _CURL_HOSTS or option.endswith("-unix-socket") or option in VALUED:
                self._asked_by(option, value)
            else:
                self.places.url(value, sends=sends)
                reach.downloads.append(path_of(value.partition("?")[0]).name)
        return Output(outside=True)

    def _asked_by(self, option: str, value: str) -> None:
        """Read the options of curl and wget that say by what way, and with what, something is asked for."""
        if option.endswith("-unix-socket"):
            self.places.file(value, writes=False)
        elif option in _CURL_HOSTS:
            # HOST:PORT:ADDRESS, or HOST1:PORT1:HOST2:PORT2; a proxy is a URL.
            target = ":".join(value.split(":")[2:]) if option in {"--resolve", "--connect-to"} else value
            self.places.url(target, sends=False)
        elif option in CARRIES and ("$" in value or option in {"-u", "--user"} or looks_random(value)):
            self.places.carried()

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
        if name == "ssh":
            return self._at(*remote(args), sends=sends)
        if name in _SOCKETS:
            self._connects(args, sends=sends)
        hosts = [arg for arg in args if not (arg.startswith("-") or arg.isdecimal() or looks_like_path(arg))]
        for host in hosts[: 1 if name in {"telnet", "nc", "ncat", "netcat"} else 4]:
            known = mail_domain(host) if name == "mail" else host.rpartition("@")[2]
            self.places.host(known, sends=sends, carries=name not in _LOOKUPS)
        return Output(outside=name not in _LOOKUPS)

    def _at(self, host: str, words: Sequence[str], *, sends: bool) -> Output:
        self.places.host(host.rpartition("@")[2], sends=sends, carries=True)
        if words:
            read_command(" ".join(words), self.places, self.depth + 1)
        return Output(outside=True)

    def _connects(self, args: Sequence[str], *, sends: bool) -> None:
        """Read the addresses of socat, and the sockets and programs that it and netcat are given."""
        program = after(args, "-e", "-c", "--exec", "--sh-exec")
        if program is not None:
            read_command(program, self.places, self.depth + 1)
        for arg in args:
            kind, _, rest = arg.partition(":")
            value = re.split(r"[,!]", rest, maxsplit=1)[0]
            if looks_like_path(arg) or kind.lower().startswith(("unix", "open", "file", "gopen")):
                self.places.file(value or arg, writes=False)
            elif kind.lower() in {"exec", "system", "shell"}:
                read_command(value, self.places, self.depth + 1)
            elif value and not value.isdecimal():
                self.places.host(value.partition(":")[0], sends=sends, carries=True)

    def transfers(self, name: str, args: Sequence[str]) -> Output:
        """Copy to or from elsewhere: the last argument is where to."""
        reach = self.places.reach
        names = [arg for arg in args if not arg.startswith("-")]
        hosts = [_remote(arg) for arg in names]
        if (
            name in {"gcloud", "gh", "aws", "op"}
            and not _VAULT_READS.isdisjoint(names)
            and {"token", "auth", "configure"} & set(names)
        ):
            self.places.secret()
        if all(host is None for host in hosts):
            if name in {"scp", "rsync"}:
                return self.copies(name, args)
            reach.does(Operation.NETWORK_REQUEST)
            reach.sends(DestinationKind.SAME_ORIGIN)  # the account that the tool is logged in to
            self._files(args, writes=False)
            return Output(local=True)
        reach.does(Operation.NETWORK_REQUEST)
        out = hosts[-1] is not None
        for arg, host in zip(names, hosts, strict=True):
            if host is None:
                self.places.file(arg, writes=not out and arg is names[-1])
            elif host:
                self.places.host(host, sends=out)
            else:
                self.places.elsewhere(sends=out)
        return Output(outside=not out)

    def shell(self, name: str, args: Sequence[str]) -> Output:
        if self.fed.outside:
            self.places.shell_from_outside()
        if name == "eval":
            return read_command(" ".join(args), self.places, self.depth + 1)
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
        elif files:  # busybox, and names of scripts: what follows is a command
            self._nested(files)
        return Output(local=True)

    def interprets(self, name: str, args: Sequence[str]) -> Output:
        if self.fed.outside:
            self.places.shell_from_outside()
        code = after(args, "-c", "-e", "--eval", "-r", "-p", "-ne", "-pe")
        if code is None and "-m" in args[:-1]:
            return self._nested(args[args.index("-m") + 1 :])
        if code is not None or self.piped or self.stage.text or "-" in args:
            read_code("\n".join(filter(None, (code, self.fed.typed, self.stage.text))), self.places)
            return Output(local=True)
        files = [arg for arg in args if not arg.startswith("-")]
        if files:
            self.places.file(files[0], writes=False)
            self.places.runs(path_of(files[0]).name)
            self._named(files[1:])
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
            self._named(args)
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
        self._named(args)
        self.places.reach.touches(TargetKind.WORKDIR)
        return Output(local=True)

    def environment(self, name: str, args: Sequence[str]) -> Output:
        """Show the environment: whole, or a variable whose name says that it holds a secret."""
        if name in {"set", "export", "declare"} and any(not arg.startswith("-") for arg in args):
            return Output()
        if name == "export" and not args:
            return Output()
        if all(arg.startswith("-") for arg in args) or any(_SECRET_VARIABLE.search(arg) for arg in args):
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
        inner = contained(args)
        if inner:
            self._nested(inner)
        return Output(local=True)

    def vault(self, name: str, args: Sequence[str]) -> Output:
        del name
        if not _VAULT_READS.isdisjoint(args):
            self.places.secret()
        return Output(local=True)

    def _nested(self, words: Sequence[str]) -> Output:
        if self.depth + 1 >= _DEPTH:
            return _too_deep(self.places)
        inner = Stage(tuple(words), (), ())
        return _Run(inner, self.fed, self.places, self.depth + 1, piped=self.piped).output()

    def _files(self, args: Iterable[str], *, writes: bool) -> None:
        for arg in args:
            value = arg.rpartition("=")[2] if "=" in arg else arg
            if "://" in value:
                self.places.url(value, sends=False)
            elif value and (not value.startswith("-") or value is not arg):
                self.places.file(value, writes=writes)

    def _named(self, args: Iterable[str], *, names: bool = False) -> None:
        """Read those arguments that are addresses or paths by their form; with `names`, of paths no more than that."""
        for arg in args:
            value = arg.rpartition("=")[2] if "=" in arg and "://" not in arg.partition("=")[0] else arg
            if "://" in value:
                self.places.reach.does(Operation.NETWORK_REQUEST)
                self.places.url(value, sends=False)
            elif looks_like_path(value) or value.startswith(".env"):
                if names:
                    self.places.names(value)
                else:
                    self.places.file(value, writes=False)


_SECRET_VARIABLE = re.compile(r"SECRET|PASSW|TOKEN|API_?KEY|PRIVATE_KEY|CREDENTIAL", re.IGNORECASE)
_READERS: Mapping[Program, Callable[[_Run, str, Sequence[str]], Output]] = {
    Program.READS: _Run.reads,
    Program.LISTS: _Run.lists,
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


_REMOTE = re.compile(r"(?:[\w.-]+@)?([\w.-]+|\[[0-9a-f:]+\]):(?![/\\]{2})")
_BUCKET = re.compile(r"(?:s3|gs|az|azure|r2|oss|b2)://")


def _remote(arg: str) -> str | None:
    """Return the host of `user@host:path`, or of a bucket; None for what is on this machine."""
    if _BUCKET.match(arg):
        return ""
    found = _REMOTE.match(arg)
    return found[1] if found is not None and len(found[1]) > 1 else None
