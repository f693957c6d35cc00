"""What the programs of a command line do: tables, by the manuals of the programs."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache

from theodolite.features.intents.tables import table

__all__ = ("FREE_OPTIONS", "INSTALLS", "TESTS", "UPLOADS", "WRAPPERS", "Program", "kind_of", "program_name")


class Program(Enum):
    """What kind of program it is."""

    READS = "reads"
    LISTS = "lists"
    FINDS = "finds"
    WRITES = "writes"
    COPIES = "copies"
    FETCHES = "fetches"
    TALKS = "talks"
    TRANSFERS = "transfers"
    SHELL = "shell"
    INTERPRETER = "interpreter"
    TESTS = "tests"
    INSTALLS = "installs"
    BUILDS = "builds"
    ENVIRONMENT = "environment"
    GIT = "git"
    CONTAINERS = "containers"
    VAULT = "vault"
    ECHO = "echo"
    QUIET = "quiet"
    UNKNOWN = "unknown"


_KINDS: dict[str, Program] = {
    name: kind
    for kind, names in {
        Program.READS: """cat less more head tail bat nl tac od xxd hexdump strings md5sum
            sha1sum sha256sum cut sort uniq awk gawk jq yq diff cmp base64 base32 gzip gunzip zcat tar zip column paste
            tr rev fold iconv openssl gpg age getent""",
        Program.LISTS: "ls tree stat file wc du df readlink realpath lsof locate whereis which",
        Program.FINDS: "grep egrep fgrep rg ag ack find fd ugrep",
        Program.WRITES: """mv rm mkdir rmdir touch tee dd ln chmod chown chgrp truncate install patch unzip shred
            sed crontab mkfs mount umount systemctl service launchctl useradd usermod passwd visudo iptables ufw
            sysctl schtasks reg at""",
        Program.COPIES: "cp",
        Program.FETCHES: "curl wget http https xh httpie aria2c lwp-request fetch lynx w3m invoke-webrequest iwr irm",
        Program.TALKS: """nc ncat netcat socat telnet ssh ftp sftp ping dig nslookup host traceroute nmap mail sendmail
            mailx mutt""",
        Program.TRANSFERS: """scp rsync rclone aws gcloud gsutil az s3cmd s5cmd mc azcopy gh glab hub vercel netlify
            heroku""",
        Program.SHELL: "bash sh zsh dash ksh ash fish busybox pwsh powershell cmd eval source .",
        Program.INTERPRETER: "python node deno bun ruby perl php lua rscript osascript tclsh julia groovy ipython",
        Program.TESTS: "pytest tox nox jest vitest mocha rspec phpunit ctest py.test unittest ava playwright",
        Program.INSTALLS: """pip pipx uv poetry pdm npm npx yarn pnpm gem bundle cargo go apt apt-get yum dnf apk brew
            conda mamba choco winget composer snap pacman cpan""",
        Program.BUILDS: "make cmake ninja mvn gradle gradlew dotnet bazel tsc gcc g++ clang rustc javac just ant",
        Program.ENVIRONMENT: "env printenv set export declare",
        Program.GIT: "git jj svn",
        Program.CONTAINERS: "docker podman nerdctl ctr crictl docker-compose kubectl helm",
        Program.VAULT: "vault pass op bw security keyring secret-tool lpass doppler sops ssh-add",
        Program.ECHO: "echo printf",
        Program.QUIET: "cd pwd true false sleep date exit test [ [[ : kill ps uname whoami id hostname clear wait",
    }.items()
    for name in names.split()
}

WRAPPERS = table(
    """
    sudo doas env nohup time timeout nice ionice stdbuf xargs watch exec command builtin setsid strace unbuffer
    caffeinate chroot runuser su script parallel flock chrt taskset
    """
)
"""Programs that run another one, which their first word that is no option names."""

FREE_OPTIONS = table("-u -g -n -c -I -P -L -d -p -k -s -i -o -C -E -a -e -w --user --group --signal")
"""Options of wrappers that take the next word with them."""

INSTALLS = table("install add ci i sync get require upgrade update tool dlx")
"""Words by which a package manager is told to install."""

TESTS = frozenset({"test", "tests", "check", "t", "pytest", "unittest"})
"""Words by which a package manager or build tool is told to test."""

UPLOADS = (
    "-d",
    "--data",
    "-F",
    "--form",
    "-T",
    "--upload-file",
    "--json",
    "--post-data",
    "--post-file",
    "--body-data",
    "--body-file",
)
"""Options by which curl and wget send something, or begin with."""


# A session runs the same few programs again and again.
@lru_cache(maxsize=1024)
def program_name(word: str) -> str:
    """Return the name of a program without its folder, version or ending.

    >>> program_name("/usr/bin/python3.11"), program_name("curl.exe"), program_name(".")
    ('python', 'curl', '.')
    """
    name = word.replace("\\", "/").rsplit("/", 1)[-1].lower()
    name = name.removesuffix(".exe").removesuffix(".cmd")
    if name.startswith(("python", "pip", "node", "ruby", "perl", "php", "lua")):
        return name.rstrip("0123456789.") or name
    return name or word


def kind_of(name: str) -> Program:
    """Return what kind of program bears that name."""
    return _KINDS.get(name, Program.UNKNOWN)
