"""What a stated task explains: which tool classes are unexpected for it.

A hint is read by its words, those of axor's task signals and of common names of policies; others say nothing. It can
make a window more suspicious and never less.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from theodolite.core.errors import ConfigError
from theodolite.core.intent import DataFlow, DestinationKind, NormalizedIntent, Operation, Permission, Provenance
from theodolite.features.intents.tables import table

__all__ = ("TASK_WORDS", "Task", "check_words", "task_of")

_LONGEST = 256
_WORD = re.compile(r"[a-z]+")

# The words of axor's TaskSignal (complexity, nature, domain) and those of policies that say the same.
_READS_ONLY = table(
    "readonly read view viewing explain review analysis analyze inspect audit summarize summary search research"
)
_CHANGES = table(
    "mutative write writing edit coding code build fix refactor implement deploy devops admin automation generative"
)
_OFFLINE = table("offline local sandbox sandboxed airgapped isolated nonetwork")
_NO_SYSTEM = table("research writing summarize summary docs documentation support email calendar finance chat")
TASK_WORDS = _READS_ONLY | _CHANGES | _OFFLINE | _NO_SYSTEM | table("focused moderate expansive general data testing")
"""All words of hints and policies that are understood."""

_WRITES = frozenset({Operation.FILE_WRITE, Operation.PACKAGE_INSTALL, Operation.EXECUTE_GENERATED_CODE})
_RUNS = frozenset({Operation.PACKAGE_INSTALL, Operation.EXECUTE_GENERATED_CODE})
_AWAY = frozenset({DestinationKind.EXTERNAL_DOMAIN, DestinationKind.UNKNOWN})


class Task(NamedTuple):
    """What a task leaves out. Without a word that is understood it leaves out nothing."""

    reads_only: bool = False
    offline: bool = False
    no_system: bool = False

    def unexpected(self, intent: NormalizedIntent) -> bool:
        """Whether the tool class of an intent is none that the task explains.

        >>> task_of("focused_readonly", "").unexpected(NormalizedIntent(tool="rm", operation="file_write"))
        True
        """
        if self.reads_only and (intent.operation in _WRITES or self._sends(intent)):
            return True
        if self.offline and (intent.destination_kind in _AWAY or intent.operation is Operation.PACKAGE_INSTALL):
            return True
        return self.no_system and (intent.operation in _RUNS or intent.writes_outside_workdir)

    def _sends(self, intent: NormalizedIntent) -> bool:
        fetched = intent.provenance in {Provenance.EXTERNAL_WEB, Provenance.OFFICIAL_DOCS}
        sends = intent.data_flow is DataFlow.LOCAL_TO_EXTERNAL and not fetched
        return sends or (intent.operation is Operation.OTHER and intent.permission is Permission.WRITE)


def check_words(**named: object) -> None:
    """Raise ConfigError where what says what a task is, by the name of the argument, is no text.

    >>> check_words(task="readonly", policy=None)
    Traceback (most recent call last):
    ...
    theodolite.core.errors.ConfigError: policy is text, such as 'readonly', not NoneType: leave out what is not known
    """
    for name, text in named.items():
        if not isinstance(text, str):
            raise ConfigError(
                f"{name} is text, such as 'readonly', not {type(text).__name__}: leave out what is not known"
            )


@lru_cache(maxsize=1024)
def task_of(hint: str, policy: str) -> Task:
    """Return what a hint and the name of a policy leave out, by their words in any case."""
    said = frozenset(_WORD.findall(f"{hint[:_LONGEST]} {policy[:_LONGEST]}".lower().replace("read_only", "readonly")))
    # "read" beside "write" is no promise to change nothing.
    return Task(
        reads_only=bool(said & _READS_ONLY) and not said & _CHANGES,
        offline=bool(said & _OFFLINE),
        no_system=bool(said & _NO_SYSTEM) and not said & (_CHANGES - {"writing", "generative"}),
    )
