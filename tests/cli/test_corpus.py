"""The recorded AgentDojo sessions: what a scan of them has to give."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import msgspec
import pytest

from theodolite.core.policy import Outcome
from theodolite.readers.labelled import label
from theodolite.reports.document import Document

DEV = Path(__file__).parents[3] / "shared" / "data" / "agentdojo" / "dev.jsonl.gz"
Shell = Callable[..., CompletedProcess[str]]

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not DEV.is_file(), reason="the recorded sessions of ../shared/data/agentdojo are not here"),
]


def test_every_session_has_one_outcome_and_clean_ones_are_clean(shell: Shell) -> None:
    with gzip.open(DEV) as lines:
        kinds = {known.session_id: known.kind for known in map(label, lines)}
    done = shell("scan", DEV, "--no-probes", "--format", "json")
    made = msgspec.json.decode(done.stdout, type=Document)
    assert done.returncode == 1
    assert sorted(session.session_id for session in made.sessions) == sorted(kinds)
    assert len(kinds) == 793
    counts = Counter((kinds[session.session_id], session.outcome) for session in made.sessions)
    assert counts["clean", Outcome.CLEAN] >= 0.98 * 180
    assert counts["clean_direct", Outcome.FINDING] <= 2
    assert counts["attacked_succeeded", Outcome.FINDING] >= 0.80 * 156


def test_two_jobs_give_the_very_same_bytes(shell: Shell) -> None:
    one, two = (shell("scan", DEV, "--format", "json", "--jobs", jobs).stdout for jobs in ("1", "2"))
    assert one == two
