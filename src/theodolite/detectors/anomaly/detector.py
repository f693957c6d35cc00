"""The detector: each proposed call is scored with the calls before it, and held against three hard rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import UNSET, Struct, field

from theodolite.core.anomaly import CRITICAL, GRAY_ZONE
from theodolite.core.calibration import Band
from theodolite.core.detector import Feature
from theodolite.core.event import Event, ToolCallProposed, TurnEnded
from theodolite.core.intent import NormalizedIntent
from theodolite.core.reading import Cause, Evidence, Fact, Failure, Reading, Status
from theodolite.core.window import Window
from theodolite.detectors.anomaly.rules import RULES, Chain
from theodolite.detectors.anomaly.scoring import Scoring
from theodolite.detectors.anomaly.tasks import check_words, task_of
from theodolite.detectors.anomaly.traits import UNEXPECTED, Sign, places_of, sign_of, traits_of

__all__ = ("SCORE", "AnomalyDetector", "AnomalySettings", "AnomalyState")

SCORE = "anomaly.score"
# Evidence is read by a person: the traits that weigh most.
_TOLD = 4
_EDGE = 1e-9


class AnomalySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[detectors.anomaly]`: what the agent is for, in words such as `readonly`, `research`, `coding`, `offline`.

    A tool class that these words leave out raises the score. Words that are not understood say nothing.
    """

    enabled: bool = True
    task: str = ""
    policy: str = ""


class AnomalyState(Struct, kw_only=True):
    """The signs of the last ten calls with their events, how far the chain has come, and what it broke, where.

    `first` are the steps that led to a way out, by their names, `broken` the events of the first call that broke each
    rule: they stay for the whole session.
    """

    seqs: list[int] = []
    signs: list[int] = []
    unexpected: list[bool] = []
    chain: Chain = field(default_factory=Chain)
    first: dict[str, int] = {}
    broken: dict[str, tuple[int, ...]] = {}


class AnomalyDetector:
    """Scores a call by what the last ten calls do together; three acts are alarms by themselves.

    `anomaly.score` is the score of axor's detectors on a model of ours. It is in the gray zone, from 0.50 to below
    0.75, where a verifier may be asked. It does not act. `anomaly.cloud_metadata`, `anomaly.docker_socket` and
    `anomaly.exfiltration` are rules: they act, at the call that breaks them, and a session that broke one keeps the
    score 1 whatever it does later. State: ten numbers and the events that broke a rule. Cost: O(1) per call.

    Says NO_EVIDENCE where the channel did not show the arguments, which hide what is reached.

    Limits. Only intents are looked at: what the normalizer does not recognize is not seen here either. The model was
    fitted on generated windows; its labels are our judgment. Names that resolve to other addresses, and secrets in
    files with innocent names, pass. Raises ConfigError for settings that are no text.
    """

    name = "anomaly"
    version = "1"
    # A turn that ended without a call has been judged, too.
    reads: frozenset[type[Event]] = frozenset({ToolCallProposed, TurnEnded})
    needs: frozenset[Feature] = frozenset({Feature.INTENT})
    settings = AnomalySettings
    bands: Mapping[str, Band] = {
        # The middle of the gray zone, so that the zone is what is near it; from 0.75 on a score is strong and plain.
        SCORE: Band(
            alert=(GRAY_ZONE + CRITICAL - _EDGE) / 2,
            strong=CRITICAL,
            width=(CRITICAL - GRAY_ZONE - _EDGE) / 2,
            acts=False,
            finds=False,
            source="the gray zone of axor-classifier-llm; the model behind it: benchmarks/anomaly.py",
        ),
        **{
            f"anomaly.{rule}": Band(
                alert=1.0,
                status=Status.REFERENCE,
                source="a hard rule; how often it fires without reason: benchmarks/anomaly.py on AgentDojo train",
            )
            for rule in RULES
        },
    }

    def __init__(self, settings: AnomalySettings | None = None, *, scoring: Scoring | None = None) -> None:
        self._settings = settings or AnomalySettings()
        self._scoring = scoring or Scoring()
        check_words(task=self._settings.task, policy=self._settings.policy)
        self._task = task_of(self._settings.task, self._settings.policy)

    def begin(self) -> AnomalyState:
        """Return the state of a session without calls."""
        return AnomalyState()

    def update(self, state: AnomalyState, event: Event, window: Window) -> tuple[Reading | Failure, ...]:
        """Score a proposed call with those before it; say which rules it breaks."""
        if not isinstance(event, ToolCallProposed):
            return ()
        call = window.call
        if call is None:
            return (self._blind("the intent of the call was not folded"),)
        self._take(state, event.seq, call.intent)
        primed = state.chain.primed
        broken = state.chain.take(state.signs[-1])
        if not primed:
            self._step(state, event.seq)
        said: list[Reading | Failure] = [self._broken(state, rule, event.seq) for rule in broken]
        if event.arguments is UNSET:
            said.append(self._blind("the channel did not show the arguments of the call"))
        said.append(self._score(state))
        return tuple(said)

    def _take(self, state: AnomalyState, seq: int, intent: NormalizedIntent) -> None:
        sign = sign_of(intent)
        most = self._scoring.size - 1
        state.seqs = [*state.seqs[-most:], seq]
        state.signs = [*state.signs[-most:], sign]
        state.unexpected = [*state.unexpected[-most:], any(self._task) and self._task.unexpected(intent)]

    def _step(self, state: AnomalyState, seq: int) -> None:
        """Note what leads up to a way out: the first that was read from outside, and the secret read after that.

        A secret that was read before is none that something from outside can have asked for.
        """
        if state.signs[-1] & Sign.SECRET_ACCESS and state.chain.primed:
            state.first[Sign.SECRET_ACCESS.name.lower()] = seq
        elif state.signs[-1] & Sign.EXTERNAL_READ:
            state.first.setdefault(Sign.EXTERNAL_READ.name.lower(), seq)

    def _broken(self, state: AnomalyState, rule: str, seq: int) -> Reading:
        steps = [*state.first.values(), seq] if rule == RULES[-1] else [seq]
        seqs = tuple(sorted(set(steps)))
        state.broken.setdefault(rule, seqs)
        return Reading(
            detector=self.name,
            version=self.version,
            code=f"anomaly.{rule}",
            score=1.0,
            evidence=(Evidence(kind=f"anomaly.{rule}", seqs=seqs),),
        )

    def _score(self, state: AnomalyState) -> Reading:
        traits = traits_of(state.signs) | (UNEXPECTED if any(state.unexpected) else 0)
        result = self._scoring.of(traits, tuple(state.broken))
        told = self._scoring.contributions(traits)[:_TOLD] if result.score >= GRAY_ZONE else ()
        evidence = [Evidence(kind=f"anomaly.{rule}", seqs=seqs) for rule, seqs in state.broken.items()]
        for part in told:
            seqs = self._shown(state, part.bit)
            evidence.append(Evidence(kind=f"anomaly.{part.trait}", seqs=seqs))
        return Reading(
            detector=self.name,
            version=self.version,
            code=SCORE,
            score=result.score,
            evidence=tuple(evidence),
            facts=tuple([Fact(part.trait, part.weight) for part in told]),
        )

    def _shown(self, state: AnomalyState, bit: int) -> tuple[int, ...]:
        if bit == UNEXPECTED:
            return _at(state.seqs, [place for place, wrong in enumerate(state.unexpected) if wrong])
        return _at(state.seqs, places_of(bit, state.signs))

    def _blind(self, detail: str) -> Failure:
        return Failure(detector=self.name, version=self.version, cause=Cause.NO_EVIDENCE, detail=detail)


def _at(seqs: Sequence[int], places: Sequence[int]) -> tuple[int, ...]:
    return tuple([seqs[place] for place in places])
