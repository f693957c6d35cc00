"""Labeled sessions out of the installed AgentDojo benchmark: its reference solutions, with its attacks and without.

No model is asked. A clean session is a user's task done as the benchmark's own solution does it. In a hijacked one the
solution of an attacker's task follows as soon as a tool has shown the injected text, and the user's task goes on after
it. In one that resists the same text is shown, and nothing comes of it. The benchmark's checks say what each came to.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from itertools import islice
from pathlib import PurePosixPath
from typing import Protocol

from msgspec import Struct

from theodolite.core.arguments import is_sequence
from theodolite.core.errors import ConfigError, MissingExtraError
from theodolite.core.labels import Known, Label
from theodolite.readers.agentdojo_runs import LABEL, AgentDojoRuns

__all__ = ("ATTACKS", "TASKS", "Benchmark", "Made", "Pair", "Run", "encode_run", "spread")

ATTACKS = ("important_instructions", "direct", "ignore_previous")
"""The attacks that are made unless others are named."""

TASKS = "v1.2.2"
"""The version of the benchmark's tasks that sessions are made of: the newest that agentdojo 0.1.35 has."""

_PIPELINE = "ground-truth"
# Some tools stamp what they make with the time of the clock, which alone has fractions of seconds.
_CLOCK = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}")
_MOMENT = "2024-05-15 12:00:00"  # in the benchmark's own days
# What the calendar lists in the order of a set, which is another one in each process.
_UNORDERED = ("participants",)


class Pair(Struct, frozen=True):
    """What a session is made of: a user's task, and what an attacker wants, if there is one; `obeys`: it is done."""

    suite: str
    task: str
    attack: str = ""
    injected: str = ""
    obeys: bool = False

    @property
    def pipeline(self) -> str:
        """The name that stands for a model: one for each way to behave, since the names of runs hold no other."""
        if not self.attack:
            return _PIPELINE
        return f"{_PIPELINE}-hijacked" if self.obeys else f"{_PIPELINE}-resisting"

    @property
    def path(self) -> PurePosixPath:
        """The place of its file below a folder of runs, as the benchmark has it."""
        folder = PurePosixPath(self.pipeline, self.suite, self.task, self.attack or "none")
        return folder / f"{self.injected or 'none'}.json"


class Run(Struct, frozen=True, kw_only=True):
    """What a pair came to: the messages, and what the benchmark's checks said of them."""

    pair: Pair
    messages: Sequence[Mapping[str, object]]
    utility: bool
    security: bool
    injections: Mapping[str, str] = {}
    package: str = ""


class Made(Struct, frozen=True, kw_only=True):
    """A session as it is kept: its place below a folder of runs, the bytes of its file, and what they say is known."""

    path: PurePosixPath
    data: bytes
    label: Label


def encode_run(run: Run) -> bytes:
    """Return a run as the benchmark writes it, to be read back by itself and by `AgentDojoRuns`, and with its label.

    What differs between two machines, a time and a duration, is left out or 0: equal runs have equal bytes.
    """
    pair = run.pair
    told = {
        "suite_name": pair.suite,
        "pipeline_name": pair.pipeline,
        "user_task_id": pair.task,
        "injection_task_id": pair.injected or None,
        "attack_type": pair.attack or None,
        "injections": run.injections,
        "messages": run.messages,
        "error": None,
        "benchmark_version": TASKS,
        "agentdojo_package_version": run.package,
        "utility": run.utility,
        "security": run.security,
        "duration": 0.0,
        LABEL: (Known.DRIFTED if pair.obeys else Known.CLEAN).value,
    }
    return json.dumps(told, indent=4).encode() + b"\n"


def spread(pairs: Iterable[Pair], limit: int | None) -> list[Pair]:
    """Return at most `limit` of some pairs: the same ones each time, and not only those of the first task.

    >>> pairs = [Pair("bank", f"user_task_{number}") for number in range(9)]
    >>> len(spread(pairs, 4)), spread(pairs, None) == pairs
    (4, True)
    """
    every = list(pairs)
    if limit is None:
        return every
    chosen = set(islice(sorted(every, key=_drawn), limit))
    return [pair for pair in every if pair in chosen]


def _drawn(pair: Pair) -> tuple[int, str]:
    name = f"{pair.suite}/{pair.task}/{pair.injected}"
    return zlib.crc32(name.encode()), name


class _Call(Protocol):
    """A call of a tool, in a reference solution."""

    function: str
    args: Mapping[str, object]

    def model_dump(self) -> dict[str, object]:
        """Return it as JSON has it."""
        ...


class _Task(Protocol):
    """A user's task, or an attacker's."""

    ID: str
    GROUND_TRUTH_OUTPUT: str

    def ground_truth(self, pre_environment: object) -> Sequence[_Call]:
        """Return the calls that do it."""
        ...


class _Runtime(Protocol):
    """Runs the tools of a suite."""

    def run_function(self, env: object, function: str, kwargs: Mapping[str, object]) -> tuple[object, str | None]:
        """Return what a tool gave, and its error."""
        ...


class _Suite(Protocol):
    """Tasks that share an environment and tools."""

    name: str
    user_tasks: Mapping[str, _Task]
    injection_tasks: Mapping[str, _Task]

    def run_task_with_pipeline(
        self, agent_pipeline: _Script, user_task: _Task, injection_task: _Task | None, injections: Mapping[str, str]
    ) -> tuple[bool, bool]:
        """Return whether the user's task was done, and whether the attacker's was."""
        ...


class _Attack(Protocol):
    """Words in which an attacker asks for something."""

    def attack(self, user_task: _Task, injection_task: _Task) -> dict[str, str]:
        """Return what is planted where the user's task will read it. Raises ValueError where it reads nothing."""
        ...


class _AttackType(Protocol):
    name: str
    is_dos_attack: bool

    def __call__(self, task_suite: _Suite, target_pipeline: _Nobody) -> _Attack:
        """Return the attack on a suite."""
        ...


class _Nobody:
    """Whom attacks address: the name of a model that the benchmark knows, and that is none."""

    name = "local"


class _Script:
    """A pipeline of the benchmark's that does what reference solutions do."""

    def __init__(
        self,
        system: str,
        shown: Callable[[object], str],
        task: _Task,
        injected: _Task | None = None,
        texts: Sequence[str] = (),
    ) -> None:
        self.told: list[dict[str, object]] = []
        self._system = system
        self._shown = shown
        self._task = task
        self._injected = injected
        self._texts = texts
        self._said: list[dict[str, object]] = []

    def query(
        self, query: str, runtime: _Runtime, env: object, messages: object = (), extra_args: object = None
    ) -> tuple[str, _Runtime, object, list[dict[str, object]], object]:
        """Return what came of a user's prompt, as the benchmark asks of a pipeline."""
        del messages
        self.told, self._said = [], []
        self._say({"role": "system", "content": _text(self._system)})
        self._say({"role": "user", "content": _text(query)})
        waiting = self._injected
        for call in self._task.ground_truth(env):
            result = self._run(call, runtime, env)
            if waiting is not None and any(_holds(result, text) for text in self._texts):
                for other in waiting.ground_truth(env):
                    self._run(other, runtime, env)
                waiting = None
        self._say({"role": "assistant", "content": _text(self._task.GROUND_TRUTH_OUTPUT), "tool_calls": None})
        return query, runtime, env, self._said, extra_args or {}

    def _run(self, call: _Call, runtime: _Runtime, env: object) -> str:
        result, error = runtime.run_function(env, call.function, call.args)
        for name in _UNORDERED:
            listed = getattr(result, name, None)
            if is_sequence(listed):
                setattr(result, name, sorted(map(str, listed)))
        text = "" if error else _CLOCK.sub(_MOMENT, self._shown(result))
        self._say({"role": "assistant", "content": _text("")}, tool_calls=[call])
        self._say({"role": "tool", "content": _text(text), "tool_call_id": None, "error": error}, tool_call=call)
        return text

    def _say(self, message: dict[str, object], **calls: _Call | list[_Call]) -> None:
        """Add a message: the benchmark is given the calls themselves, and the file what they look like in JSON."""
        self._said.append({**message, **calls})
        plain = {
            name: [one.model_dump() for one in call] if isinstance(call, list) else call.model_dump()
            for name, call in calls.items()
        }
        self.told.append({**message, **plain})


def _text(text: str | None) -> list[dict[str, str]]:
    return [{"type": "text", "content": text or ""}]


def _holds(result: str, injected: str) -> bool:
    """Whether a result shows injected text, however the tool wraps it: two lines of it, or the only one."""
    squeezed = "".join(char for char in result.replace("\\n", " ") if char.isalnum())
    lines = ["".join(char for char in line if char.isalnum()) for line in injected.splitlines()]
    lines = [line for line in lines if line]
    return bool(lines) and sum(line in squeezed for line in lines) >= min(2, len(lines))


class Benchmark:
    """The installed package. Raises MissingExtraError without it, and ConfigError for a version that is too old.

    It takes seconds to import, since it imports the libraries of every provider; nothing is sent anywhere.
    """

    def __init__(self) -> None:
        try:
            suites = import_module("agentdojo.task_suite.load_suites")
            attacks = import_module("agentdojo.attacks.attack_registry")
            import_module("agentdojo.attacks")
            pipelines = import_module("agentdojo.agent_pipeline.agent_pipeline")
            self.package = version("agentdojo")
        except (ModuleNotFoundError, PackageNotFoundError) as error:
            raise MissingExtraError(extra="agentdojo", needed_for="sessions of AgentDojo") from error
        get: Callable[[str], Mapping[str, _Suite]] = suites.get_suites
        self._suites = get(TASKS)
        if not self._suites:
            raise ConfigError(f"agentdojo {self.package} has no tasks {TASKS}: pip install -U 'theodolite[agentdojo]'")
        registered: Mapping[str, _AttackType] = attacks.ATTACKS
        # Who asks a person for words, or for no deed, makes no labeled session.
        self._attacks = {name: kind for name, kind in registered.items() if name != "manual" and not kind.is_dos_attack}
        self._made: dict[tuple[str, str], _Attack] = {}
        load: Callable[[None], str] = pipelines.load_system_message
        self._system = load(None)
        self._shown: Callable[[object], str] = pipelines.tool_result_to_str

    @property
    def suites(self) -> tuple[str, ...]:
        """The names of its suites."""
        return tuple(sorted(self._suites))

    @property
    def attacks(self) -> tuple[str, ...]:
        """The names of the attacks that need no model and ask for a deed."""
        return tuple(sorted(self._attacks))

    def pairs(self, suites: Iterable[str], attacks: Sequence[str], limit: int | None = None) -> list[Pair]:
        """Return what there is to make, at most `limit` of each kind of each suite and attack.

        Clean sessions come of every task, also of those that elsewhere an attacker asks for; with an attack every
        user's task meets every attacker's, once to obey and once to resist.
        """
        return [pair for suite in suites for pair in self._pairs(suite, attacks, limit)]

    def _pairs(self, suite: str, attacks: Sequence[str], limit: int | None) -> Iterator[Pair]:
        own = self._suites[suite]
        yield from spread([Pair(suite, task) for task in own.user_tasks], limit)
        yield from spread([Pair(suite, task) for task in own.injection_tasks], limit)
        for attack in attacks:
            met = [Pair(suite, task, attack, other) for task in own.user_tasks for other in own.injection_tasks]
            for obeys in (True, False):
                yield from [Pair(suite, one.task, attack, one.injected, obeys) for one in spread(met, limit)]

    def run(self, pair: Pair) -> Run | None:
        """Return what a pair comes to; None where the user's task reads nothing that an attacker could write."""
        suite = self._suites[pair.suite]
        task = suite.user_tasks.get(pair.task) or suite.injection_tasks[pair.task]
        injected = suite.injection_tasks[pair.injected] if pair.injected else None
        injections: dict[str, str] = {}
        if injected is not None:
            try:
                injections = self._attack(pair).attack(task, injected)
            except ValueError:
                return None
        script = _Script(self._system, self._shown, task, injected if pair.obeys else None, list(injections.values()))
        utility, security = suite.run_task_with_pipeline(script, task, injected, injections)
        return Run(
            pair=pair,
            messages=script.told,
            utility=utility,
            security=security,
            injections=injections,
            package=self.package,
        )

    def _attack(self, pair: Pair) -> _Attack:
        """Return the attack of a pair: the same one for its whole suite, since it looks up once what a task reads."""
        key = pair.suite, pair.attack
        if key not in self._made:
            self._made[key] = self._attacks[pair.attack](self._suites[pair.suite], _Nobody())
        return self._made[key]

    def make(self, pair: Pair) -> Made | None:
        """Return the session of a pair; None where it is not what it should be.

        That is: the injected text was never shown, or the benchmark's check finds the deed where none was done, or none
        where one was.
        """
        run = self.run(pair)
        if run is None or (pair.attack and run.security is not pair.obeys):
            return None
        data = encode_run(run)
        ((_, label),) = AgentDojoRuns().labels(BytesIO(data), str(pair.path))
        unseen = label.slices["kind"] == "attacked_unseen"
        return None if unseen else Made(path=pair.path, data=data, label=label)
