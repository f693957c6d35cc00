"""What redaction by rules costs: time per kB of ordinary text, and whether it stays linear where that is hard.

Run: python benchmarks/redaction.py
"""

from __future__ import annotations

import re
import time

from theodolite.core.event import ToolResultObserved
from theodolite.core.reading import Evidence, Reading
from theodolite.core.redaction import redact
from theodolite.redactors.rules import RuleRedactor

ORDINARY = {
    "prose": "The agent looked at the calendar and found several meetings in the week ahead; it said so to Emma. ",
    "prose with dates": "The agent found three meetings on 2024-05-08 at 10:30 and 2 more, of 45 minutes, on the 9th. ",
    "JSON": '{"id": "26", "title": "Team Sync", "start_time": "2024-05-26 09:00", "people": ["emma", "joe"]}, ',
    "Japanese": "エージェントは予定表を見て、来週の会議をいくつか見つけ、エマにそう伝えました。",
    "source code": "def limits(self, tokens: int = 4096) -> dict[str, int]:\n    return {'max_tokens': tokens}\n",
    "mail addresses": "From: emma.johnson@example.com To: joe@example.org, eve@example.net Subject: Team Sync, 9:00. ",
}
HARD = (
    *("a", "1", " ", "=", '"', "(", "\u200b", "a@", "1-", "1 ", "eyJ.", "+1", "::", "[[[[", "-----BEGIN ", "sk-"),
    *("password=", "password is ", "secret", "token_", "a@b.co ", "+1 415 555 2671 ", "+12345678 ", "415-555-2671 "),
    *("password:\n", "password\nvalue: ", ";password=", "curl -u a:", "Private-Lines: 1\n", "4111  1111  ", "%25"),
    *("4111 ", "1::1 ", "1.1.1.1 ", "://a:b@", "&#64;", "[REDACTED:EMAIL]", "0049 30 1 ", "DE89 "),
)
# Rules are skipped where their signs are absent; with these in front, none is.
AWAKE = (
    ' "a"@b.c @ :: 1:2:3:4:5:6: eyJ PRIVATE KEY sk- ghp_ xox AIza SG. :AA key- token: password: x pin code + 00'
    " 0000000000000 phone tel ssn social sec bearer authorization cookie :// &%\\ (at) 1.2.3. -x [REDACTED:X] \u200b\n"
    " Private-Lines: RW basic curl mysql sshpass jdbc:oracle ;password= \n"
)
ADDRESS = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+")


def seconds(text: str, runs: int) -> float:
    """Return the processor time of the best run, each with a redactor that has not seen the text before."""
    best = float("inf")
    for redactor in [RuleRedactor() for _ in range(runs)]:
        begun = time.process_time()
        redactor.text(text)
        best = min(best, time.process_time() - begun)
    return best


def ordinary() -> None:
    """Print what text costs in which there is little or nothing to be found, beside one pass of one regex."""
    print(f"{'ordinary text':<20}{'µs per 100 characters':>24}{'µs per kB (100 kB)':>22}{'x one regex':>14}")
    for name, sentence in ORDINARY.items():
        short = (sentence * 2)[:100]
        text = sentence * (100_000 // len(sentence))
        begun = time.process_time()
        ADDRESS.sub("", text)
        one = time.process_time() - begun
        whole = seconds(text, runs=5)
        print(f"{name:<20}{seconds(short, runs=2000) * 1e6:>24.1f}{whole * 1e6 / 100:>22.1f}{whole / one:>14.1f}")


def linearity(length: int) -> None:
    """Print what twice the length costs of texts that are hard for some rule."""
    print(f"\n{'repeated':<20}{'s for 0.5 MB':>14}{'s for 1 MB':>14}{'ratio':>8}")
    for mixture in HARD:
        half = seconds(AWAKE + mixture * (length // 2 // len(mixture)), runs=2)
        whole = seconds(AWAKE + mixture * (length // len(mixture)), runs=2)
        print(f"{mixture!r:<20}{half:>14.3f}{whole:>14.3f}{whole / half:>8.2f}")


def quotations() -> None:
    """Print what it costs to redact a reading that quotes two sentences of a tool result, the first time and later."""
    print(f"\n{'quoted from':<20}{'ms, first time':>16}{'ms, again':>12}")
    for kilobytes in (1, 10, 100, 1000):
        sentence = ORDINARY["JSON"]
        text = "".join(sentence.replace("26", str(number)) for number in range(kilobytes * 1000 // len(sentence)))
        quoted = text[len(text) // 2 :][:200]
        evidence = Evidence(kind="bench.quote", observed=quoted, expected="a call that the goal explains", path="body")
        said = Reading(detector="bench", version="1", code="bench.quote", score=1.0, evidence=(evidence,))
        redactor, events = RuleRedactor(), [ToolResultObserved(text=text)]
        times: list[float] = []
        for _ in range(20):
            begun = time.process_time()
            redact(said, redactor, around=events)
            times.append(time.process_time() - begun)
        print(f"{f'{kilobytes} kB':<20}{times[0] * 1e3:>16.2f}{min(times[1:]) * 1e3:>12.2f}")


if __name__ == "__main__":
    ordinary()
    quotations()
    linearity(1_000_000)
