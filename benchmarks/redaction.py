"""What redaction by rules costs: time per kB of ordinary text, and whether it stays linear where that is hard.

Run: python benchmarks/redaction.py
"""

from __future__ import annotations

import re
import time

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
    *("4111 ", "1::1 ", "1.1.1.1 ", "://a:b@", "&#64;", "[REDACTED:EMAIL]", "0049 30 1 ", "DE89 "),
)
# Rules are skipped where their signs are absent; with these in front, none is.
AWAKE = (
    ' "a"@b.c @ :: 1:2:3:4:5:6: eyJ PRIVATE KEY sk- ghp_ xox AIza SG. :AA key- token: password: x pin code + 00'
    " 0000000000000 phone tel ssn social sec bearer authorization cookie :// &%\\ (at) 1.2.3. -x [REDACTED:X] \u200b\n"
)
ADDRESS = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+")


def seconds(text: str, runs: int) -> float:
    """Return the processor time of the best run."""
    redactor = RuleRedactor()
    best = float("inf")
    for _ in range(runs):
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


if __name__ == "__main__":
    ordinary()
    linearity(1_000_000)
