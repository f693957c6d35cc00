"""What a path of a file names: something of the project, of the system, a secret, or the socket of a container engine.

Paths are taken apart, never searched: `.env` is a secret and `.env.example` is none, whatever stands around them.

Limits. Nothing is looked up: a link may lead elsewhere. Without the operator's word the working directory is unknown:
an absolute path outside the system's own folders counts as the project's.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from theodolite.core.intent import TargetKind
from theodolite.features.intents.tables import table

__all__ = ("FilePath", "looks_like_path", "path_of")

# Longer than Linux takes (PATH_MAX of linux/limits.h, 4,096 bytes) is no path.
_LONGEST = 4096

_SOCKETS = frozenset(
    {"docker.sock", "podman.sock", "containerd.sock", "crio.sock", "cri-dockerd.sock", "dockershim.sock"}
    | {"docker.raw.sock", "docker_engine", "buildkitd.sock"}
)
# Files that hold credentials by the documentation of the tools that own them.
_SECRET_NAMES = table(
    """
    .env .envrc .netrc _netrc .pgpass .my.cnf .npmrc .pypirc .git-credentials .vault-token .htpasswd .dockercfg
    .s3cfg .boto .terraformrc credentials credentials.json credentials.db access_tokens.db
    application_default_credentials.json secrets.json secrets.yaml secrets.yml secrets.toml secrets.ini secrets.env
    secret.json secret.yaml secret.yml secret.key passwords.txt password.txt passwords.csv secrets.txt logins.json
    key4.db kubeconfig master.key terraform.tfstate terraform.tfstate.backup wallet.dat shadow gshadow
    id_rsa id_dsa id_ecdsa id_ed25519 id_ecdsa_sk id_ed25519_sk
    """
) | {"cookies.sqlite"}
# What Chromium calls its files, and the folders of a profile that hold them (its docs/user_data_dir.md); Opera's too.
_BROWSER_NAMES = frozenset({"login data", "web data", "cookies"})
_PROFILES = frozenset({"default", "opera stable"})
_SECRET_ENDINGS = (".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".ovpn", ".agekey", ".asc.key")
# Below such a folder everything is a secret but what stands in _PUBLIC.
_SECRET_FOLDERS = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store", ".docker", ".age"})
_SECRET_PAIRS = frozenset(
    {
        (".kube", "config"),
        (".config", "gcloud"),
        (".config", "gh"),
        (".config", "op"),
        ("run", "secrets"),
        ("etc", "shadow"),
        ("etc", "gshadow"),
        ("etc", "kubernetes"),
        ("library", "keychains"),
        ("ssl", "private"),
        ("share", "keyrings"),
    }
)
_FIRST_OF_PAIR = frozenset([first for first, _ in _SECRET_PAIRS])
_PUBLIC = frozenset({"known_hosts", "authorized_keys", "config", "allowed_signers", "trustdb.gpg"})
_ENV_SAMPLES = frozenset({"example", "sample", "template", "dist", "defaults", "schema", "d.ts", "test"})
_CERTIFICATES = frozenset({"cacert.pem", "ca.pem", "cert.pem", "fullchain.pem", "chain.pem"})
_ACCOUNTS = ("client_secret", "service-account", "service_account")
_PROCESS_SECRETS = frozenset({"environ", "mem", "maps", "auxv"})

# The system's own folders: FHS 3.0, macOS and Windows.
_SYSTEM = frozenset(
    {"etc", "usr", "bin", "sbin", "lib", "lib32", "lib64", "boot", "dev", "proc", "sys", "var", "run", "opt", "srv"}
    | {"system", "library", "applications", "private", "windows", "program files", "program files (x86)", "programdata"}
)
_HARMLESS_DEVICES = frozenset({"null", "zero", "stdin", "stdout", "stderr", "tty", "random", "urandom", "fd"})
# Files of a home folder that run or open something by themselves: who writes one comes back.
_STARTUP = table(
    """
    .bashrc .bash_profile .bash_login .profile .zshrc .zshenv .zprofile .zlogin .login .cshrc .inputrc .vimrc
    .gitconfig .xinitrc .xprofile .pam_environment authorized_keys
    """
)
_STARTUP_FOLDERS = frozenset({"autostart", "launchagents", "launchdaemons", "startup", "systemd", "cron.d", "crontabs"})

_HOME = re.compile(r"(?:\$\{?HOME\}?|%USERPROFILE%|\$env:USERPROFILE)(?=[/\\]|\Z)", re.IGNORECASE)
_DRIVE = re.compile(r"[a-z]:(?=[/\\]|\Z)", re.IGNORECASE)
_PATH_LIKE = re.compile(r"(?:~|\.{1,2}|[a-z]:)?[/\\][^\s]|~/|\.{1,2}[/\\]", re.IGNORECASE)


class FilePath(NamedTuple):
    """What a path names. `outside`: it lies outside the working directory, as far as can be told."""

    target: TargetKind
    outside: bool
    name: str


def looks_like_path(text: str) -> bool:
    """Whether a value is a path by its own form: it begins like one and has no line break.

    >>> looks_like_path("/etc/passwd"), looks_like_path("../x"), looks_like_path("and/or"), looks_like_path("/s")
    (True, True, False, True)
    """
    return len(text) <= _LONGEST and "\n" not in text and _PATH_LIKE.match(text) is not None


def path_of(text: str) -> FilePath:
    """Return what a path names. Linear in its length; beyond 4,096 characters only its end is read.

    >>> path_of("~/.ssh/id_ed25519").target.value, path_of(".env.example").target.value
    ('secret', 'workdir')
    >>> path_of("/var//run/../run/docker.sock").target.value, path_of("src/../../etc/passwd").outside
    ('docker_socket', True)
    """
    parts, rooted, home, above = _parts(text[-_LONGEST:])
    name = parts[-1] if parts else ""
    if name in _SOCKETS:
        return FilePath(TargetKind.DOCKER_SOCKET, outside=True, name=name)
    outside = home or above
    if _is_secret(parts, name):
        return FilePath(TargetKind.SECRET, outside=outside or rooted, name=name)
    if (rooted and _is_system(parts)) or _starts_up(parts, name, home=home or rooted):
        return FilePath(TargetKind.SYSTEM_PATH, outside=True, name=name)
    return FilePath(TargetKind.WORKDIR, outside=outside, name=name)


def _parts(text: str) -> tuple[list[str], bool, bool, bool]:
    """Return the parts in lower case, and whether the path is absolute, in a home folder, or leads above its start."""
    text = text.strip(" \t\n\"'")
    if "$" in text or "%" in text:
        text = _HOME.sub("~", text)
    drive = _DRIVE.match(text) if text[1:2] == ":" else None
    if drive is not None or "\\" in text:
        text = text[drive.end() if drive else 0 :].replace("\\", "/")
    rooted, home = drive is not None or text[:1] == "/", text[:1] == "~"
    parts: list[str] = []
    above = False
    for part in text.lower().split("/"):
        if part in {"", "."}:
            continue
        if part != "..":
            parts.append(part)
        elif parts and parts[-1] != "~":
            parts.pop()
        else:
            above = not rooted
    # What stands below /proc/PID/root is the whole file system again.
    if len(parts) > 3 and parts[0] == "proc" and parts[2] == "root":  # noqa: PLR2004 - proc, its number, root, a file
        parts = parts[3:]
    return parts, rooted, home, above


def _is_secret(parts: list[str], name: str) -> bool:
    if name in _SECRET_NAMES:
        return True
    if name.startswith(".env."):
        return name[5:] not in _ENV_SAMPLES and name.rpartition(".")[2] not in _ENV_SAMPLES
    if name.endswith(_SECRET_ENDINGS):
        # Certificates of authorities are public, and stand in well-known places.
        return "certs" not in parts and name not in _CERTIFICATES
    if name.endswith(".json") and name.startswith(_ACCOUNTS):
        return True
    if name in _BROWSER_NAMES:
        return any(part in _PROFILES or part.startswith("profile ") for part in parts)
    return _in_secret_place(parts, name)


def _in_secret_place(parts: list[str], name: str) -> bool:
    if parts and parts[0] == "proc" and name in _PROCESS_SECRETS:
        return True
    if not _SECRET_FOLDERS.isdisjoint(parts) and name not in _PUBLIC and not name.endswith(".pub"):
        return True
    return not _FIRST_OF_PAIR.isdisjoint(parts) and not _SECRET_PAIRS.isdisjoint(pairwise(parts))


def _is_system(parts: list[str]) -> bool:
    if not parts or parts[0] not in _SYSTEM:
        return False
    if parts[0] == "dev" and len(parts) > 1:
        return parts[1] not in _HARMLESS_DEVICES
    # Temporary files are the project's as much as anybody's.
    return not ("tmp" in parts[:3] or (parts[0] == "var" and parts[1:2] == ["folders"]))


def _starts_up(parts: list[str], name: str, *, home: bool) -> bool:
    return not _STARTUP_FOLDERS.isdisjoint(parts) or (name in _STARTUP and (home or name == "authorized_keys"))
