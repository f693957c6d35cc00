"""`theodolite scan` with a baseline and with suppressions: the files, and what they do to the exit status."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from subprocess import CompletedProcess

import msgspec
import pytest
from typer.testing import Result

from theodolite.cli.triaging import AHEAD, read_baseline, read_suppressions
from theodolite.core.errors import ConfigError
from theodolite.reports.document import Document, SessionReport

Run = Callable[..., Result]
Shell = Callable[..., CompletedProcess[str]]
TODAY = date(2026, 3, 1)
MARK = "v1:00112233445566778899aabbccddeeff"


def _scanned(run: Run, *arguments: str | Path) -> tuple[int, Document]:
    done = run("scan", *arguments, "-f", "json")
    return done.exit_code, msgspec.json.decode(done.stdout, type=Document)


# -- a baseline -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["json", "jsonl", "baseline"])
def test_only_what_is_new_counts(theodolite: Run, recordings: Path, tmp_path: Path, form: str) -> None:
    (recordings / "blind.json").unlink()
    known = tmp_path / "known"
    if form == "baseline":
        assert theodolite("scan", recordings, "--write-baseline", known).exit_code == 1
    else:
        known.write_text(theodolite("scan", recordings, "-f", form).stdout, encoding="utf-8")
    status, made = _scanned(theodolite, recordings, "--baseline", known)
    assert status == 0
    assert [session.outcome for session in made.sessions] == ["clean", "finding"]
    assert made.summary.outcomes == {"finding": 0, "failed": 0, "not_enough_evidence": 0, "clean": 1}
    assert (made.summary.triage.baseline, made.summary.triage.known, made.summary.triage.gone) == (str(known), 1, 0)
    shutil.copy(recordings / "hijacked.json", recordings / "newer.json")
    status, made = _scanned(theodolite, recordings, "--baseline", known)
    assert status == 1
    standings = {session.session_id: [found.standing for found in session.findings] for session in made.sessions}
    assert standings == {"clean": [], "hijacked": ["known"], "newer": ["new"]}


def test_a_baseline_hides_no_session_that_could_not_be_judged(
    theodolite: Run, recordings: Path, tmp_path: Path
) -> None:
    known = tmp_path / "known.json"
    theodolite("scan", recordings, "--write-baseline", known)
    assert theodolite("scan", recordings, "--baseline", known).exit_code == 3


def test_what_is_no_longer_found_is_counted_and_drops_out(theodolite: Run, recordings: Path, tmp_path: Path) -> None:
    known = tmp_path / "known.json"
    theodolite("scan", recordings, "--write-baseline", known)
    clean = recordings / "clean.json"
    said = theodolite("scan", clean, "--baseline", known, "--write-baseline", known)
    assert said.exit_code == 0
    assert "0 known findings; 1 of the baseline is no longer found" in " ".join(said.stdout.split())
    assert said.stderr == f"0 findings written to the baseline {known}\n"
    assert read_baseline(known) == frozenset()


@pytest.mark.parametrize("form", ["text", "json", "jsonl"])
def test_the_exit_status_is_the_same_in_any_form(theodolite: Run, recordings: Path, tmp_path: Path, form: str) -> None:
    known = tmp_path / "known.json"
    theodolite("scan", recordings, "--write-baseline", known)
    done = theodolite("scan", recordings / "hijacked.json", "--baseline", known, "-f", form)
    assert done.exit_code == 0
    assert ("1 known finding" in done.stderr) is (form == "jsonl")


def test_a_baseline_is_the_same_for_any_order_folder_and_number_of_jobs(
    shell: Shell, recordings: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "elsewhere" / "deep"
    moved.mkdir(parents=True)
    for n in range(5):
        shutil.copy(recordings / "hijacked.json", recordings / f"h-{n}.json")
    for file in recordings.iterdir():
        shutil.copy(file, moved / file.name)
    shell("scan", recordings, "--write-baseline", tmp_path / "one")
    backwards = sorted(moved.iterdir(), reverse=True)
    shell("scan", *backwards, "--jobs", "2", "--write-baseline", tmp_path / "two")
    one, two = (tmp_path / "one").read_text(encoding="ascii"), (tmp_path / "two").read_text(encoding="ascii")
    assert one == two
    lines = one.splitlines()
    assert len(lines) == 2 + 6
    assert [json.loads(line.rstrip(","))["session"] for line in lines[1:-1]] == [
        *(f"h-{n}" for n in range(5)),
        "hijacked",
    ]


def test_a_baseline_holds_no_text_of_a_session(theodolite: Run, recordings: Path, tmp_path: Path) -> None:
    known = tmp_path / "known.json"
    theodolite("scan", recordings, "--write-baseline", known)
    (found,) = json.loads(known.read_text(encoding="ascii"))["findings"]
    assert found.keys() == {"fingerprint", "code", "session"}


def test_a_suppressed_finding_does_not_become_known_by_a_report(
    theodolite: Run, recordings: Path, tmp_path: Path
) -> None:
    report, written, hijacked = tmp_path / "scan.json", tmp_path / "known.json", recordings / "hijacked.json"
    _suppress(tmp_path / "s.toml", code='"fusion.call"', session='"*"')
    hidden = ("--suppressions", tmp_path / "s.toml")
    theodolite("scan", hijacked, *hidden, "-f", "json", "-o", report, "--write-baseline", written)
    for known in (report, written):
        assert theodolite("scan", hijacked, "--baseline", known).exit_code == 1


@pytest.mark.parametrize(
    "content",
    [
        "",
        "\n",
        "not json",
        "{}",
        "[]",
        '{"findings": 3}',
        '{"theodolite": "baseline", "version": 2, "findings": []}',
        '{"theodolite": "events", "version": 1}',
        '{"schema": 2, "sessions": []}',
        '{"schema": 1, "sessions": [{"findings": [{"code": "fusion.call", "source": 1, "calls": []}]}]}',
        f'{{"theodolite": "baseline", "version": 1, "findings": [{{"fingerprint": "{MARK.replace("v1", "v0")}"}}]}}',
        '{"theodolite": "baseline", "version": 1, "findings": [{"fingerprint": "v1:0"}]}',
        '{"findings": []}\n{"findings": [',
        '{"sessions": ' + "[" * 100_000,
    ],
    ids=range(14),
)
def test_a_bad_baseline_is_an_error_and_no_silent_pass(
    theodolite: Run, recordings: Path, tmp_path: Path, content: str
) -> None:
    known = tmp_path / "known.json"
    known.write_text(content, encoding="utf-8")
    done = theodolite("scan", recordings / "clean.json", "--baseline", known)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {known} ")
    assert done.stderr.count("\n") == 1


def test_a_baseline_that_cannot_be_read_is_an_error(theodolite: Run, recordings: Path, tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b'{"theodolite": "\xff"}')
    for known in (tmp_path / "nowhere", recordings, tmp_path / "bytes"):
        assert theodolite("scan", recordings / "clean.json", "--baseline", known).exit_code == 2


def test_a_new_baseline_takes_the_place_of_nothing_else(theodolite: Run, recordings: Path, tmp_path: Path) -> None:
    clean = recordings / "clean.json"
    before = clean.read_bytes()
    for target in (clean, recordings, tmp_path / "no" / "folder" / "known.json"):
        done = theodolite("scan", clean, "--write-baseline", target)
        assert (done.exit_code, done.stdout) == (2, "")
        assert "--write-baseline" in done.stderr or "cannot be read" in done.stderr
    same = theodolite("scan", clean, "--write-baseline", tmp_path / "x", "--output", tmp_path / "x")
    assert same.exit_code == 2
    assert clean.read_bytes() == before


# -- suppressions -----------------------------------------------------------------------------------------------------


def _suppress(path: Path, **fields: str) -> None:
    """Write one suppression that is in force today."""
    day = datetime.now(UTC).date() + timedelta(days=30)
    known = {"reason": '"Ann: these are invoice runs"', "expires": day.isoformat(), **fields}
    path.write_text("[[suppress]]\n" + "".join(f"{key} = {value}\n" for key, value in known.items()), encoding="utf-8")


def test_a_suppressed_finding_does_not_count_and_says_why(theodolite: Run, recordings: Path, tmp_path: Path) -> None:
    _, before = _scanned(theodolite, recordings / "hijacked.json")
    (found,) = before.sessions[0].findings
    _suppress(tmp_path / "s.toml", fingerprint=f'"{found.fingerprint}"')
    status, made = _scanned(theodolite, recordings / "hijacked.json", "--suppressions", tmp_path / "s.toml")
    assert status == 0
    (found,) = made.sessions[0].findings
    assert (found.standing, found.reason) == ("suppressed", "Ann: these are invoice runs")
    assert made.summary.triage.suppressions == str(tmp_path / "s.toml")


def test_the_file_of_the_folder_is_used_and_named(theodolite: Run, recordings: Path, home: Path) -> None:
    assert theodolite("scan", recordings / "hijacked.json").exit_code == 1
    _suppress(home / "theodolite-suppressions.toml", code='"fusion.call"', tool='"*"')
    done = theodolite("scan", recordings / "hijacked.json")
    assert done.exit_code == 0
    assert "suppressions theodolite-suppressions.toml: 1 finding suppressed" in done.stdout
    (home / "none.toml").write_text("", encoding="utf-8")
    assert theodolite("scan", recordings / "hijacked.json", "--suppressions", "none.toml").exit_code == 1


def test_one_that_expired_or_is_unused_is_told_in_every_form(theodolite: Run, recordings: Path, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(
        '[[suppress]]\ncode = "fusion.call"\ntool = "*"\nreason = "then"\nexpires = 2020-01-01\n'
        f'[[suppress]]\nfingerprint = "{MARK}"\nreason = "never"\nexpires = "{datetime.now(UTC).date()}"\n',
        encoding="utf-8",
    )
    used = (recordings / "hijacked.json", "--suppressions", file)
    status, made = _scanned(theodolite, *used)
    assert status == 1
    (expired,), (unused,) = made.summary.triage.expired, made.summary.triage.unused
    assert (expired.entry, expired.names, expired.expires) == (1, "fusion.call, tool *", "2020-01-01")
    assert (unused.entry, unused.names, unused.reason) == (2, MARK, "never")
    lines = theodolite("scan", *used, "-f", "jsonl")
    msgspec.json.decode(lines.stdout, type=SessionReport)
    for said in (lines.stderr, " ".join(theodolite("scan", *used).stdout.split())):
        assert "suppression 1 (fusion.call, tool *) expired on 2020-01-01" in said
        assert f"suppression 2 ({MARK}) is about no finding of this scan" in said


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("suppress = 3", "two brackets"),
        ("[suppress]\ncode = 'a.b'", "two brackets"),
        ("[[suppres]]", "unknown key 'suppres'"),
        ("[[suppress]]\nresaon = 'x'", "suppression 1: unknown key 'resaon'; did you mean 'reason'?"),
        ("[[suppress]]\nentry = 1", "unknown key 'entry'"),
        ("[[suppress]]\ncode = 'a.b'\ntool = '*'\nreason = 'x'", "missing required field `expires`"),
        ("[[suppress]]\ncode = 'a.b'\ntool = '*'\nexpires = 2026-03-01", "missing required field `reason`"),
        ("[[suppress]]\ncode = 'a.b'\ntool = '*'\nreason = ' '\nexpires = 2026-03-01", "the reason is empty"),
        ("[[suppress]]\ncode = 'a.b'\ntool = '*'\nreason = 'x'\nexpires = 2027-03-03", "at the latest"),
        ("[[suppress]]\ncode = 'a.b'\ntool = '*'\nreason = 'x'\nexpires = 'soon'", "suppression 1"),
        ("[[suppress]]\ncode = 'a.b'\ntool = '*'\nreason = 'x'\nexpires = 2026-03-01T00:00:00", "suppression 1"),
        ("[[suppress]]\ncode = 'a.failure'\ntool = '*'\nreason = 'x'\nexpires = 2026-03-01", "cannot be suppressed"),
        ("[[suppress]]\nfingerprint = 'v1:0'\nreason = 'x'\nexpires = 2026-03-01", "is no fingerprint"),
        ("[[suppress]]\ncode = 7\ntool = '*'\nreason = 'x'\nexpires = 2026-03-01", "suppression 1"),
        ("[[suppress", "is not TOML"),
    ],
)
def test_a_wrong_suppression_is_an_error_that_says_where(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "s.toml"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        read_suppressions(file, TODAY)
    assert str(error.value).startswith(str(file))
    assert said in str(error.value)


def test_a_date_may_be_up_to_a_year_ahead(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    _suppress(file, code='"a.b"', tool='"*"', expires=(TODAY + AHEAD).isoformat())
    _, (one,) = read_suppressions(file, TODAY)
    assert (one.entry, one.expires) == (1, date(2027, 3, 2))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a named pipe")
@pytest.mark.parametrize("name", ["theodolite.toml", "theodolite-suppressions.toml"])
def test_a_file_of_the_folder_that_is_none_is_an_error_and_waits_for_nobody(
    shell: Shell, recordings: Path, home: Path, name: str
) -> None:
    clean = recordings / "clean.json"
    (home / name).mkdir()
    folder = shell("scan", clean)
    (home / name).rmdir()
    os.mkfifo(home / name)
    pipe = shell("scan", clean)
    (home / name).unlink()
    (home / name).symlink_to("nowhere")
    dangling = shell("scan", clean)
    for done in (folder, pipe, dangling):
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"error: {name} ")
    assert "is a pipe" in pipe.stderr
