"""`theodolite guard drift`: rates of recorded calls, rises, exit statuses, and that no value is shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from theodolite.cli.drifting import Counting
from theodolite.contracts import read
from theodolite.core.event import AnyHostEvent, SessionEnded, Tool, ToolCallProposed, ToolsDeclared
from theodolite.core.recording import HEADER

Run = Callable[..., Result]
CANARY = "canary-7f3a"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
RIGHT: dict[str, object] = {"n": 1}
WRONG: dict[str, object] = {"n": CANARY}


def session(name: str, calls: Sequence[tuple[str, object]], *, declares: bool = False) -> str:
    events: list[dict[str, object]] = []
    if declares:
        events.append({"event": "ToolsDeclared", "tools": [{"name": "count", "parameters": SCHEMA}]})
    events += [
        {"event": "ToolCallProposed", "source": "model", "tool": tool}
        | ({} if arguments is None else {"arguments": arguments})
        for tool, arguments in calls
    ]
    events.append({"event": "SessionEnded"})
    stamped = [{**event, "session": name, "seq": seq, "at": float(seq)} for seq, event in enumerate(events)]
    return "".join(f"{json.dumps(event)}\n" for event in stamped)


def recorded(folder: Path, sessions: Sequence[str], name: str = "all.jsonl") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"{HEADER.decode().strip()}\n{''.join(sessions)}", encoding="utf-8")
    return folder


def one_call_each(arguments: Sequence[object], *, declares: bool = False) -> list[str]:
    return [session(f"s-{n:03}", [("count", given)], declares=declares) for n, given in enumerate(arguments)]


@pytest.fixture
def spec(home: Path) -> Path:
    file = home / "tools.json"
    file.write_text(json.dumps([{"name": "count", "inputSchema": SCHEMA}]), encoding="utf-8")
    return file


@pytest.mark.parametrize("declares", [False, True])
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_rise_is_told_and_exits_with_1(theodolite: Run, home: Path, spec: Path, form: str, *, declares: bool) -> None:
    folder = recorded(home / "rec", one_call_each([RIGHT] * 150 + [WRONG] * 20, declares=declares))
    against = [] if declares else ["--spec", spec]
    done = theodolite("guard", "drift", folder, *against, "--baseline", "100", "--format", form)
    assert done.exit_code == 1, done.stdout
    assert CANARY not in done.stdout
    if form == "text":
        assert "payload.drift" in done.stdout
        assert "count /n type_mismatch: from 0 of 100 (0.0 to 3.7 %) to" in " ".join(done.stdout.split())
        return
    account = json.loads(done.stdout)
    [rise] = account["rises"]
    assert (rise["operation"], rise["pointer"], rise["kind"], rise["since"]) == ("count", "/n", "type_mismatch", 151)
    assert (rise["before"]["k"], rise["before"]["n"]) == (0, 100)
    assert account["operations"] == {"count": 170}
    assert account["outcome"] == "finding"


MAP = {"type": "object", "additionalProperties": {"type": "integer"}, "properties": {"n": {"type": "integer"}}}


@given(
    st.lists(
        st.dictionaries(st.text(min_size=1).map("made up {}".format), st.text(), min_size=1), min_size=1, max_size=4
    )
)
def test_no_name_that_a_call_made_up_is_counted(calls: list[dict[str, str]]) -> None:
    published = read([{"name": "count", "inputSchema": MAP}])
    declared = ToolsDeclared(session="s", tools=(Tool(name="count", parameters=Raw(json.dumps(MAP).encode())),))
    for contracts in (published, None):
        counting = Counting(contracts, baseline=10, observe=True)
        counting.take(declared)
        for made_up in calls:
            counting.take(ToolCallProposed(session="s", tool="count", arguments={**made_up, "n": "x"}))
            counting.take(ToolCallProposed(session="s", tool="count", arguments={"n": 1}))  # so that none is a retry
        account = counting.account((), "")
        assert {rate.pointer for rate in account.rates} == {"/*", "/n"}


def test_a_baseline_that_began_anew_after_a_rise_is_not_called_the_first(
    theodolite: Run, home: Path, spec: Path
) -> None:
    folder = recorded(home / "rec", one_call_each([RIGHT] * 100 + [WRONG] * 30))
    account = json.loads(theodolite("guard", "drift", folder, "--spec", spec, "--baseline", "50", "-f", "json").stdout)
    [rate] = account["rates"]
    begun = rate["baseline_from"]
    assert 101 < begun <= 130
    assert (rate["before"]["k"], rate["before"]["n"], rate["now"]["n"]) == (131 - begun, 131 - begun, 0)
    text = " ".join(theodolite("guard", "drift", folder, "--spec", spec, "--baseline", "50").stdout.split())
    assert "first 50 calls of an operation, and of a place that has risen as many after that" in text
    assert f"{131 - begun} of {131 - begun} (" in text
    assert f"100.0 %), from call {begun}" in text
    quiet = recorded(home / "quiet", one_call_each(([RIGHT] * 9 + [WRONG]) * 20))
    done = theodolite("guard", "drift", quiet, "--spec", spec, "--baseline", "50", "-f", "json")
    assert [rate["baseline_from"] for rate in json.loads(done.stdout)["rates"]] == [1]
    assert "from call" not in theodolite("guard", "drift", quiet, "--spec", spec, "--baseline", "50").stdout


def test_one_of_anything_is_told_as_one(theodolite: Run, home: Path, spec: Path) -> None:
    calls: list[tuple[str, object]] = [("count", WRONG), ("count", RIGHT)]
    text = theodolite("guard", "drift", recorded(home / "rec", [session("s", calls)]), "--spec", spec).stdout
    assert "1 session, 2 calls: 1 counts; 1 retry, 0 of unknown tools, 0 not checked" in text


def test_a_plain_schema_is_that_of_the_tool_which_its_file_is_named_after(theodolite: Run, home: Path) -> None:
    schema = home / "count.json"
    schema.write_text(json.dumps(SCHEMA), encoding="utf-8")
    folder = recorded(home / "rec", one_call_each([RIGHT] * 3))
    account = json.loads(theodolite("guard", "drift", folder, "--spec", schema, "-f", "json").stdout)
    assert account["operations"] == {"count": 3}


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_report_goes_to_a_file_where_that_is_asked_for(theodolite: Run, home: Path, spec: Path, form: str) -> None:
    folder = recorded(home / "rec", one_call_each([RIGHT] * 5))
    command = ["guard", "drift", folder, "--spec", spec, "-f", form]
    plain = theodolite(*command)
    done = theodolite(*command, "--output", home / "report.txt")
    assert (done.exit_code, done.stdout) == (plain.exit_code, "")
    assert (home / "report.txt").read_text(encoding="utf-8") == plain.stdout
    for kept in (spec, folder / "all.jsonl"):
        assert theodolite(*command, "--output", kept).exit_code == 2


def test_rates_are_told_with_intervals_where_nothing_rose(theodolite: Run, home: Path, spec: Path) -> None:
    folder = recorded(home / "rec", one_call_each(([RIGHT] * 9 + [WRONG]) * 20))
    done = theodolite("guard", "drift", folder, "--spec", spec, "--baseline", "100")
    assert done.exit_code == 0, done.stdout
    text = " ".join(done.stdout.split())
    assert "nothing has risen" in text
    assert "count /n type_mismatch 10 of 100 (5.5 to 17.4 %) 10 of 100 (5.5 to 17.4 %)" in text


def test_fewer_calls_than_the_baseline_cannot_be_judged(theodolite: Run, home: Path, spec: Path) -> None:
    folder = recorded(home / "rec", one_call_each([WRONG] * 5))
    done = theodolite("guard", "drift", folder, "--spec", spec)
    assert done.exit_code == 3
    assert "nothing can have risen" in " ".join(done.stdout.split())
    assert "5 of 5" in done.stdout


def test_what_does_not_count_is_told(theodolite: Run, home: Path, spec: Path) -> None:
    calls: list[tuple[str, object]] = [
        ("count", WRONG),
        ("count", WRONG),
        ("count", RIGHT),
        ("count", RIGHT),
        ("other", {}),
        ("count", None),
    ]
    folder = recorded(home / "rec", [session("s", calls)])
    account = json.loads(theodolite("guard", "drift", folder, "--spec", spec, "-f", "json").stdout)
    assert account["facts"] == {
        "sessions": 1,
        "calls": 6,
        "retries": 2,
        "of unknown tools": 1,
        "not checked": 1,
        "unreadable": 0,
        "counted": 2,
        "past": 0,
    }
    [rate] = account["rates"]
    assert (rate["before"]["k"], rate["before"]["n"], rate["now"]["n"]) == (1, 2, 0)


def test_what_is_only_observed_counts_where_that_is_asked_for(theodolite: Run, home: Path, spec: Path) -> None:
    folder = recorded(home / "rec", one_call_each([{"n": 1, CANARY: 2}]))
    for options, kinds in ([], []), (["--observe"], [("/*", "undeclared_field")]):
        done = theodolite("guard", "drift", folder, "--spec", spec, "-f", "json", *options)
        assert [(rate["pointer"], rate["kind"]) for rate in json.loads(done.stdout)["rates"]] == kinds
        assert CANARY not in done.stdout


def test_what_cannot_be_read_is_said_and_no_clean_bill(theodolite: Run, home: Path, spec: Path) -> None:
    folder = recorded(home / "rec", one_call_each([RIGHT] * 5))
    (folder / "junk.json").write_text("{", encoding="utf-8")
    done = theodolite("guard", "drift", folder, "--spec", spec, "--baseline", "2")
    assert done.exit_code == 3
    assert "junk.json" in done.stderr
    named = theodolite("guard", "drift", folder / "junk.json", "--spec", spec)
    assert (named.exit_code, named.stdout) == (2, "")
    (folder / "junk.json").unlink()
    assert theodolite("guard", "drift", folder, "--spec", spec, "--baseline", "2").exit_code == 0


def test_without_any_contract_it_says_what_is_lacking(theodolite: Run, home: Path) -> None:
    done = theodolite("guard", "drift", recorded(home / "rec", one_call_each([RIGHT] * 3)))
    assert done.exit_code == 3
    assert "no call has a contract that it can be held against: name one with --spec" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["gone/"], "does not exist"),
        (["rec", "--spec", "gone.json"], "gone.json"),
        (["rec", "--reader", "nobodys"], "no reader is named 'nobodys'"),
    ],
)
def test_what_is_wrong_with_the_command_exits_with_2(
    theodolite: Run, home: Path, arguments: list[str], told: str
) -> None:
    recorded(home / "rec", one_call_each([RIGHT]))
    done = theodolite("guard", "drift", *arguments)
    assert done.exit_code == 2
    assert told in done.stderr


def events(sessions: Sequence[Sequence[bool]]) -> list[AnyHostEvent]:
    found: list[AnyHostEvent] = []
    for number, calls in enumerate(sessions):
        name = f"s-{number}"
        found += [ToolCallProposed(session=name, tool="count", arguments=WRONG if bad else RIGHT) for bad in calls]
        found.append(SessionEnded(session=name))
    return found


@given(st.lists(st.lists(st.booleans(), max_size=6), max_size=20))
def test_each_row_of_failures_in_a_session_is_one_trial(sessions: list[list[bool]]) -> None:
    counting = Counting(read([{"name": "count", "inputSchema": SCHEMA}]), baseline=500, observe=False)
    for event in events(sessions):
        counting.take(event)
    facts = counting.account((), "").facts
    rows = sum(bad and not (at and calls[at - 1]) for calls in sessions for at, bad in enumerate(calls))
    after = sum(at > 0 and calls[at - 1] for calls in sessions for at in range(len(calls)))
    assert facts["calls"] == sum(map(len, sessions)) == facts["counted"] + facts["retries"]
    assert facts["retries"] == after
    assert sum(rate.before.k for rate in counting.account((), "").rates) == rows
