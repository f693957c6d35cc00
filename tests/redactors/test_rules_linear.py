from __future__ import annotations

import time

import pytest

from theodolite.redactors.rules import RuleRedactor

# Rules are skipped where a sign that they need is absent; this has all the signs, so that no rule is.
AWAKE = (
    ' "a"@b.c @ :: 1:2:3:4:5:6: eyJ PRIVATE KEY sk- ghp_ xox AIza SG. :AA key- token: password: x pin code + 00'
    " 0000000000000 phone tel ssn social sec bearer authorization cookie :// &%\\ (at) 1.2.3. -x [REDACTED:X] \u200b\n"
    " Private-Lines: RW basic curl mysql sshpass jdbc:oracle ;password= \n"
)
MIXTURES = [
    *'a01 \n-.@:="<([\\+&%\0\u200b字',
    *("a@", "a@b.", "a.", "a@b.co ", "a@b.1", '"@', "1-", "1 ", "44 ", "4 1 ", "4111 ", "411 ", "eyJ.", "-eyJ"),
    *("eyJaaaaa.", "+1", "+1 ", "+1 415 555 2671 ", "+12345678 ", "0049 30 1 ", "020 ", "030/1 ", "(415) "),
    *("415-555-2671 ", "phone: 4155552671 ", "::", "1::1 ", "f:f:", "1.", "1.1.1.1 ", "[[[[", "([{<", "-----BEGIN "),
    *("-----BEGIN RSA PRIVATE KEY-----", "sk-", "ghp_", "AKIA", "xoxb-", ":AA", "password=", "password "),
    *("password is ", "password for ", 'password="', "password='x", "password=)", "token=", "token_", "secret"),
    *("token=aB1cD2eF3g ", "key is ", "bearer ", "authorization: ", "cookie: a=", "--token ", "--a-", "pin is "),
    *("://", "://a:b@", "://a@", "&#", "&#64;", "%40", "(at)", "[REDACTED:EMAIL]", "[REDACTED:", "DE89 "),
    "123-45-6789 ",
    *("password:\n", "password:\n\na1 ", "password\nvalue: ", "password\n ", "token:\n", "password a1 ", "password 11"),
    *(";password=", ";pwd=a(", "curl ", "curl -u ", "curl -u a:", "mysql ", "mysql -p", "sshpass -p ", "curl -u a:b1 "),
    *("Private-Lines: 1\n", "Private-Lines: 1\n" + "a" * 64 + "\n", "RWRTY0Iy", "RWQAAEIy ", "AGE-PLUGIN-", "pul-"),
    *("---- BEGIN SSH2 PRIVATE KEY ----\n", "---- BEGIN ", "----", "--- "),
    *("authorization: digest a=b, ", 'authorization: digest a="', "basic ", "basic YTpi ", "basic YTpiYzpi "),
    *("4111  1111  ", "4111\t", "4111 - 1111 - ", "4111.1111.", "DE89\t3704\t", "DE89  ", "02139-4307 "),
    *("://a:b/", "://a:", "://a:b@c.d ", "jdbc:oracle:thin:a/", "jdbc:oracle:a:", "%25", "%2525", "&amp;", "&amp;amp;"),
    *("\\\\", "\\\\u00", "\\n"),
]


def seconds(text: str) -> float:
    """Of processor time, since others may use the machine, by a redactor that has not seen the text before."""
    redactor = RuleRedactor()
    begun = time.process_time()
    redactor.text(text)
    return time.process_time() - begun


def assert_linear(mixture: str, length: int, most_seconds: float) -> None:
    """Compare the best of several runs, which come to their end as soon as these are in bounds."""
    count = length // len(mixture)
    once, twice = AWAKE + mixture * count + AWAKE, AWAKE + mixture * count * 2 + AWAKE
    short = long = float("inf")
    for _ in range(20):
        short, long = min(short, seconds(once)), min(long, seconds(twice))
        if long <= 2.5 * short and long <= most_seconds:
            return
    pytest.fail(f"{mixture!r}: {short:.3f} s for {length} characters, {long:.3f} s for twice as many")


@pytest.mark.parametrize("mixture", MIXTURES)
def test_twice_the_text_takes_twice_the_time(mixture: str) -> None:
    assert_linear(mixture, 20_000, most_seconds=0.5)


@pytest.mark.slow
@pytest.mark.parametrize("mixture", MIXTURES)
def test_a_megabyte_takes_twice_the_time_of_half_of_it(mixture: str) -> None:
    assert_linear(mixture, 500_000, most_seconds=6)


@pytest.mark.parametrize(
    "text",
    [
        "The agent looked at the calendar and found three meetings on 2024-05-08 at 10:30; it said so to Emma.",
        '{"id": "26", "title": "Team Sync", "start_time": "2024-05-26 09:00", "participants": ["emma", "joe"]}',
    ],
)
def test_ordinary_text_costs_no_more_than_a_few_searches(text: str) -> None:
    def best_of(runs: int, text: str) -> float:
        return min(seconds(text) for _ in range(runs))

    # Against the same length with something to be done everywhere: some 20 to 90 µs when the machine is idle.
    busy = ("bob@example.com 10.0.0.1 " * 5)[: len(text)]
    assert best_of(200, text) < best_of(200, busy)
