"""What a program in a scripting language names: addresses, files, the environment.

Limits. The program is read, not run: what it puts together, renames or imports under another name is not seen. Of a
long one 32,768 characters are read from its start and as many from its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from theodolite.core.intent import DataFlow, Operation, TargetKind
from theodolite.features.intents.addresses import place_of
from theodolite.features.intents.places import Places

__all__ = ("read_code",)

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*\Z", re.IGNORECASE)
_SCHEME_LENGTH = 16
_REST = re.compile(r"://[^\s\"'<>`|;)]{1,256}")
_QUOTED_PATH = re.compile(r"[\"'`]((?:~|\.{1,2}|\$HOME|[A-Za-z]:)?[/\\][^\"'`\n]{1,256}|\.env[.\w]*)[\"'`]")
# Addresses and names of metadata services where a host stands by itself, as in HTTPConnection("169.254.169.254").
_QUOTED_HOST = re.compile(
    r"[\"'`]\[?([0-9a-fx][0-9a-fx.:]{6,44}|(?:api\.)?metadata\.[a-z.]{4,24}|instance-data\.ec2\.internal)\]?(?::\d{1,5})?[\"'`]",
    re.IGNORECASE,
)
_CODE = 65_536
# How a program in a scripting language names the environment, other programs and what it sends. Words of the standard
# libraries of Python, JavaScript, Ruby and Perl.
_ENVIRONMENT_WORDS = ("environ", "process.env", "getenv", "ENV[")
_ENVIRONMENT = re.compile(r"\bos\.environ\b(?!\s*\[\s*[\"']PATH)|\bprocess\.env\b|\bgetenv\(|\bENV\[")
_SENDING = re.compile(
    r"\brequests\.(?:post|put|patch)\b|\bmethod\s*[:=]\s*[\"']POST|\burlopen\([^)]*,|\.sendall?\(|\bdata\s*="
)


def read_code(code: str, places: Places) -> None:
    """Note what a program in a scripting language names: addresses, files, the environment."""
    reach = places.reach
    reach.does(Operation.EXECUTE_GENERATED_CODE)
    reach.executes = True
    reach.flows(DataFlow.LOCAL_TO_LOCAL)
    reach.touches(TargetKind.WORKDIR)
    code = code if len(code) <= _CODE else f"{code[: _CODE // 2]}\n{code[-_CODE // 2 :]}"
    urls = list(_urls(code))
    sending = bool(urls) and _SENDING.search(code) is not None
    for url in urls:
        places.url(url, sends=sending)
    for found in _QUOTED_PATH.findall(code):
        places.file(found, writes=False)
    for host in _QUOTED_HOST.findall(code):
        place = place_of(host.rpartition(":")[0] if host.count(":") == 1 else host)
        if place.target is TargetKind.CLOUD_METADATA:  # other numbers with dots may be versions
            places.place(place, sends=False)
    if any(word in code for word in _ENVIRONMENT_WORDS) and _ENVIRONMENT.search(code):
        places.secret()


def _urls(code: str) -> Iterator[str]:
    """Yield what is written as a URL, found by its slashes: to look for schemes would cost ten times as much."""
    at = code.find("://")
    while at >= 0:
        scheme = _SCHEME.search(code, max(0, at - _SCHEME_LENGTH), at)
        rest = _REST.match(code, at)
        if scheme is not None and rest is not None:
            yield scheme[0] + rest[0]
        at = code.find("://", at + 3)
