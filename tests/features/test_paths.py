from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.features.intents.paths import looks_like_path, path_of


@pytest.mark.parametrize(
    "path",
    [
        "~/.ssh/id_rsa",
        "/home/u/.ssh/id_ed25519",
        "C:\\Users\\u\\.ssh\\id_rsa",
        "$HOME/.aws/credentials",
        "${HOME}/.config/gcloud/application_default_credentials.json",
        ".env",
        "config/.env.production",
        "~/.config/google-chrome/Default/Cookies",
        "AppData/Local/Google/Chrome/User Data/Profile 2/Login Data",
        "./.env.local",
        ".npmrc",
        "/etc/shadow",
        "/proc/self/environ",
        "/proc/1/root/etc/shadow",
        "/run/secrets/db",
        "/var/run/secrets/kubernetes.io/serviceaccount/token",
        "deploy/server.key",
        "tls/private.pem",
        "credentials.json",
        "service-account-prod.json",
        "passwords.kdbx",
        "~/.kube/config",
        "/HOME/U/.SSH/ID_RSA",
        "src/../.env",
        "'.env'",
    ],
)
def test_secrets(path: str) -> None:
    assert path_of(path).target == "secret"


@pytest.mark.parametrize(
    "path",
    [
        "token.py",
        "tokens/README.md",
        "src/password_reset.py",
        "docs/secrets.md",
        ".env.example",
        ".env.template",
        ".env.local.example",
        ".env.production.sample",
        "src/cookies",
        "docs/web data",
        ".environment",
        "~/.ssh/id_rsa.pub",
        "~/.ssh/known_hosts",
        "~/.aws/config",
        "keyboard.key.md",
        "monkey",
        "environ",
        "certs/ca.pem",
    ],
)
def test_what_only_sounds_like_a_secret(path: str) -> None:
    assert path_of(path).target == "workdir"


@pytest.mark.parametrize(
    ("path", "target", "outside"),
    [
        ("src/a.py", "workdir", False),
        ("/home/u/project/a.py", "workdir", False),
        ("/private/tmp/x", "workdir", False),
        ("/var/tmp/x", "workdir", False),  # noqa: S108 - as above
        ("/dev/null", "workdir", False),
        ("../other/a.py", "workdir", True),
        ("a/../../b", "workdir", True),
        ("a/../b", "workdir", False),
        ("~/notes.txt", "workdir", True),
        ("/etc/passwd", "system_path", True),
        ("/usr/bin/python", "system_path", True),
        ("C:\\Windows\\System32\\drivers\\etc\\hosts", "system_path", True),
        ("~/.bashrc", "system_path", True),
        ("~/.config/autostart/x.desktop", "system_path", True),
        ("~/.ssh/authorized_keys", "system_path", True),
        ("/dev/sda", "system_path", True),
        ("/var/run/docker.sock", "docker_socket", True),
        ("//var//run/../run/./docker.sock", "docker_socket", True),
        ("/proc/1/root/run/containerd/containerd.sock", "docker_socket", True),
        ("\\\\.\\pipe\\docker_engine", "docker_socket", True),
        ("~/Library/Containers/com.docker.docker/Data/docker.raw.sock", "docker_socket", True),
        ("", "workdir", False),
    ],
)
def test_what_a_path_names(path: str, target: str, *, outside: bool) -> None:
    known = path_of(path)
    assert (known.target, known.outside) == (target, outside)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("/etc/passwd", True),
        ("~/x", True),
        ("./x", True),
        ("C:\\x", True),
        ("and/or", False),
        ("/", False),
        ("a\n/b", False),
    ],
)
def test_the_form_of_a_path(text: str, *, is_one: bool) -> None:
    assert looks_like_path(text) is is_one


@given(st.text(max_size=300))
def test_any_text_names_something_in_any_case(text: str) -> None:
    looks_like_path(text)
    assert path_of(text.upper()).target == path_of(text.upper().lower()).target


def test_a_long_path_is_known_by_its_end() -> None:
    assert path_of("x/" * 100_000 + ".env").target == "secret"
