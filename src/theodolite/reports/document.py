"""The machine-readable form of a scan: an interface, versioned by `schema`.

`theodolite scan --format json` gives one Document, `--format jsonl` one SessionReport a line and no summary. Keys are
never left out. A later version may add keys under the same schema number; it removes or changes none.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec
from msgspec import Struct

from theodolite.core.coverage import Coverage
from theodolite.core.event import Source
from theodolite.core.intent import Origin, Role
from theodolite.core.policy import Action, Outcome
from theodolite.core.reading import Cause, Evidence, Level, Status
from theodolite.reports.triage import Standing
from theodolite.stats.shift import Direction

__all__ = (
    "ArgumentReport",
    "AskedReport",
    "CallReport",
    "DetectorReport",
    "Document",
    "FactReport",
    "FindingReport",
    "GoalReport",
    "PopulationReport",
    "ProbeVerdict",
    "ProbedReport",
    "ReasonReport",
    "SessionReport",
    "SignalReport",
    "StepReport",
    "Summary",
    "SuppressionReport",
    "TriageReport",
    "UnreadableReport",
    "json_schema",
)


class FactReport(Struct, frozen=True, kw_only=True):
    """One named number or word that an answer of models rests on."""

    name: str
    value: float | str


class SignalReport(Struct, frozen=True, kw_only=True):
    """One graded answer of a detector, alarmed or not; it stands here and nowhere else.

    `seq` is the event that brought it, `about` the seq of the event that it judges: the same, unless models were
    asked. It alarmed when `level` is not `clear`; such an alarm is part of a finding when `finds` is true, or when it
    made the session's action higher. `calibration` names the artefact that graded it, null for the detector's own
    threshold. `models` are those that answered, where any did; with `surrogate` one of them is not the session's own,
    so that the answer says nothing about that agent. `facts` are what such an answer rests on, in the order in which
    they came, and a name may come twice; empty where no model answered. A detector that could not judge has the code
    `NAME.failure`, no score, and says why in `cause` and `detail`. Texts are redacted.
    """

    seq: int
    about: int
    detector: str
    version: str
    code: str
    score: float | None
    level: Level
    status: Status
    ambiguous: bool
    finds: bool
    calibration: str | None
    models: tuple[str, ...]
    surrogate: bool
    evidence: tuple[Evidence, ...]
    cause: Cause | None
    detail: str
    facts: tuple[FactReport, ...] = ()


class ArgumentReport(Struct, frozen=True, kw_only=True):
    """One value among the arguments of a call, without the value: its JSON Pointer, what it is for, whose it is.

    `origin` says where it first stood: with the user, in a record that nobody else writes, in untrusted text, which is
    a tool result mostly, or nowhere before the agent's model gave it. `seq` is the event that held it, null for the
    user and the model, and `start` to `end` the passage there, in characters; both are 0 where that is not known. With
    `within` it is not the whole value but a link or an address inside it.
    """

    path: str
    role: Role
    origin: Origin
    seq: int | None
    start: int
    end: int
    within: bool


class ReasonReport(Struct, frozen=True, kw_only=True):
    """One term of the score of a call: the code that says it, its name, what it added in log-odds, and that in words.

    A term below 0 lowered the score.
    """

    code: str
    term: str
    added: float
    text: str


class CallReport(Struct, frozen=True, kw_only=True):
    """One proposed tool call.

    `score` is that of `fusion.call`, in [0, 1], null where no fusion spoke. `reasons` are its terms, what raised it
    most first. `arguments` says where each value came from, in order; of more than 64 the first, those from untrusted
    text before others; null where nobody looked, or the arguments were not shown. `allowed` is whether the call might
    run. `signals` are the codes that alarmed or failed on this call, each once; the signals themselves stand in the
    session's list, with the call's `seq` as their `about`.
    """

    seq: int
    tool: str
    score: float | None
    allowed: bool
    signals: tuple[str, ...]
    arguments: tuple[ArgumentReport, ...] | None = None
    reasons: tuple[ReasonReport, ...] = ()


class GoalReport(Struct, frozen=True, kw_only=True):
    """What the user asked for, redacted and cut to 240 characters, and the event in which they said so."""

    seq: int
    text: str


class FindingReport(Struct, frozen=True, kw_only=True):
    """Alarms of one code with one cause: the event `source`. `calls` are the seqs of the events that alarmed.

    `fingerprint` is the same for this finding in each scan of the session. `standing` is `known` for one of the
    baseline and `suppressed` for one that somebody answers for: with a `reason`, up to the day `expires` (YYYY-MM-DD).
    """

    code: str
    source: int
    calls: tuple[int, ...]
    fingerprint: str
    standing: Standing
    reason: str
    expires: str | None


class StepReport(Struct, frozen=True, kw_only=True):
    """An event that evidence points to by its seq, or that an argument came from, without what it carried.

    `event` is its type, `source` who wrote it, `tool` the tool that was called or answered, empty for other types.
    """

    seq: int
    turn: int
    event: str
    source: Source
    tool: str


class ProbeVerdict(StrEnum):
    """What the probes of a session come to, in a word."""

    DRIFT_FOUND = "drift_found"
    NOTHING_FOUND = "nothing_found"
    NOT_MEASURABLE = "not_measurable"
    NOT_ENOUGH_EVIDENCE = "not_enough_evidence"


class ProbedReport(Struct, frozen=True, kw_only=True):
    """What the probes of a session come to together: `verdict`, and the same in words as `text`.

    `code` is the one that decides: `fusion.session` where the calls are judged too, else `behavior.session`. `evidence`
    is what that came to, null where it heard of no probe; `bar` is what it alarms from, null where an artefact says so.
    `answered` and `failed` count probes.
    """

    verdict: ProbeVerdict
    text: str
    code: str
    evidence: float | None
    bar: float | None
    answered: int
    failed: int


class UnreadableReport(Struct, frozen=True, kw_only=True):
    """A part of a recording that could not be read; `line` counts from 1, 0 means the file as a whole.

    `parts` is how many it stands for: of very many the first are listed, and the rest is counted in one.
    """

    file: str
    line: int
    reason: str
    parts: int = 1


class SessionReport(Struct, frozen=True, kw_only=True):
    """One session: what it came to, what was seen of it, each call, and all that the detectors said, in order.

    `counts_as` is the outcome without the findings that are known or suppressed, null where only such findings would
    count. `steps` are the events that the signals' evidence points to, and those that arguments came from. `goals` is
    what the user said, in order: a call is judged against all of it that came before. Of more than 1,000 the first.
    `probed` is what its probes came to, null where it was not probed.
    `file` is the recording that it was read from, `reader` the name of the format that was detected there.
    """

    session_id: str
    agent_id: str
    file: str
    reader: str
    outcome: Outcome
    counts_as: Outcome | None
    action: Action
    coverage: Coverage
    calls: tuple[CallReport, ...]
    signals: tuple[SignalReport, ...]
    findings: tuple[FindingReport, ...]
    steps: tuple[StepReport, ...]
    unreadable: tuple[UnreadableReport, ...]
    goals: tuple[GoalReport, ...] = ()
    probed: ProbedReport | None = None


class DetectorReport(Struct, frozen=True, kw_only=True):
    """What one version of a detector did over all sessions; `blind` counts those that it could not judge."""

    detector: str
    version: str
    decides: bool
    spoke: int
    failed: int
    blind: int


class SuppressionReport(Struct, frozen=True, kw_only=True):
    """A suppression that is out of date: its place in the file, from 1, and what it names."""

    entry: int
    names: str
    reason: str
    expires: str


class TriageReport(Struct, frozen=True, kw_only=True):
    """What told new findings from others, and what is out of date in it.

    `baseline` and `suppressions` are the files, empty where there is none. `known` and `suppressed` count findings,
    `settled` the sessions of which only such findings would count. `gone` counts findings of the baseline that were not
    found, null without a baseline or when the scan was stopped. `expired` no longer hide anything; `unused` were about
    no finding of this scan.
    """

    baseline: str
    suppressions: str
    known: int
    suppressed: int
    settled: int
    gone: int | None
    expired: tuple[SuppressionReport, ...]
    unused: tuple[SuppressionReport, ...]


class AskedReport(Struct, frozen=True, kw_only=True):
    """What was used of models. `cost` is in the currency of their prices; null where one of them has none.

    Of `repeatable` questions, whose answers stand for other sessions too, the answers to `known` were there already and
    took no call.
    """

    calls: int
    tokens: int
    cost: float | None
    repeatable: int = 0
    known: int = 0


class PopulationReport(Struct, frozen=True, kw_only=True):
    """How the sessions as a whole compare with the clean ones that the calibration was fitted to, by highest scores.

    `sessions` counts those of agents and models that it names. `e_value` is the evidence that they are drawn otherwise,
    1 for none; `recalibrate` says that it reached 200 once, after ten sessions or more: the calibration's rates do not
    hold for them. `direction` is then where their highest scores lie. It is no finding, and says nothing of a session.
    """

    sessions: int
    e_value: float
    recalibrate: bool
    direction: Direction | None


class Summary(Struct, frozen=True, kw_only=True):
    """The scan as a whole.

    `complete` is false when it was stopped. `outcomes` counts sessions by what they count as, every outcome named; with
    `triage.settled` they add up to `sessions`. `findings` counts new findings by code. `unread` counts the parts that
    could not be read, those inside sessions too; `unreadable` lists those that belong to no session, the first thousand
    of them. `asked` is null where no model was there to be asked. `store` is the file in which evidence was kept, empty
    where none was, and `records` how much of it. `thresholds` has the score from which each code alarmed. `trusted` are
    the tools of which the settings say that nobody else writes what they return, `unmet` the names in `[tools]` that no
    session declares or calls. `population` is null without a calibration that says where the scores of its sessions
    lay. `version` is that of the package.
    """

    version: str
    calibration: str | None
    complete: bool
    sessions: int
    events: int
    calls: int
    refused: int
    outcomes: dict[Outcome, int]
    findings: dict[str, int]
    triage: TriageReport
    detectors: tuple[DetectorReport, ...]
    asked: AskedReport | None
    store: str
    records: int
    thresholds: dict[str, float]
    unread: int
    unreadable: tuple[UnreadableReport, ...]
    trusted: tuple[str, ...] = ()
    unmet: tuple[str, ...] = ()
    population: PopulationReport | None = None


class Document(Struct, frozen=True, kw_only=True):
    """A whole scan."""

    schema: Literal[1] = 1
    sessions: tuple[SessionReport, ...]
    summary: Summary


def json_schema() -> dict[str, object]:
    """Return the JSON Schema (2020-12) of a Document; `$defs` has that of a SessionReport, a line of jsonl."""
    dialect = "https://json-schema.org/draft/2020-12/schema"
    schema = {"$schema": dialect, "title": "theodolite scan --format json", **msgspec.json.schema(Document)}
    return msgspec.json.decode(msgspec.json.encode(schema), type=dict[str, object])
