"""The embedded model as an implementation of the Model port."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from threading import Lock

from anyio import CapacityLimiter, to_thread

from theodolite.core.errors import ConfigError, MissingExtraError, ModelError
from theodolite.core.inquiry import Query, Reply
from theodolite.models.local.engine import Engine
from theodolite.models.local.line import Line
from theodolite.models.local.query import Asking, Sampling
from theodolite.models.local.weights import SMOLLM2, checked

__all__ = ("LocalModel",)

# The first bytes of a GGUF file (GGUF specification, "File Structure").
_MAGIC = b"GGUF"


class LocalModel:
    """Answers queries with a model on this machine: the bundled one, or the GGUF file at `path`.

    The bundled weights are those that `theodolite models pull` fetches. They make everything real and are too small for
    a verdict: nothing is claimed about what they detect. A larger instruct model of the same form does better.

    *How it answers.* `samples` draws at `temperature`, of at most `max_tokens` tokens each, one after the other; each
    has a seed of its own, made from `seed` and its number. A `schema` holds the draws to JSON; one that `max_tokens`
    cuts is given as it is. `options` are answered by exact probabilities (`theodolite.models.local.choice` says how
    they are read, and what they are not), from which the draws are then taken. `tools` go through the model's chat
    template if it has a place for them, else into the system text; calls that it attempts are parsed, as
    `{"name": ..., "arguments": ...}`, and never run. Control tokens in a query's text are taken apart, so that no
    message can pose as another. Where the query has no system text, the model's template may put in its own. With
    `max_concurrency` 1 equal queries get equal answers, whatever was asked between them; beside another query the
    roundings of the runtime differ. Usage is in tokens; the cost is 0.

    *What it costs.* The first `ask` starts a process, which takes 0.6 s and 370 MB with the bundled weights; their
    speed with one thread is about 240 tokens/s read and 100 tokens/s written. More `threads` than idle cores make it
    slower. Each of `max_concurrency` callers at once has a context of `context` tokens, so that much memory for each.

    *State.* Safe for any number of threads and event loops; callers beyond `max_concurrency` wait in turn. A caller
    that is cancelled is let go at once, and its work is dropped within about two seconds, during which the next one
    may wait. `close` ends the process; so does the end of this object or of the interpreter. The process is shown
    nothing of the environment but what finds folders, libraries and processors.

    *Raises*, from `ask`: ModelError (TIMEOUT for a process that does not stand within 60 s, else whoever asks sets the
    time; MALFORMED for what cannot be read or was not held to its schema; ERROR for weights that are absent, changed or
    broken, a query that is too long, and a process that was lost, which the next `ask` starts anew). Here: ConfigError,
    and MissingExtraError without xllamacpp.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        max_concurrency: int = 1,
        threads: int = 1,
        context: int = 8192,
        temperature: float = 0.7,
        max_tokens: int = 192,
        seed: int = 0,
        name: str = "",
    ) -> None:
        for what, number in {
            "max_concurrency": max_concurrency,
            "threads": threads,
            "context": context,
            "max_tokens": max_tokens,
        }.items():
            if number < 1:
                raise ConfigError(f"{what} of a local model is {number}: give 1 or more")
        if not (math.isfinite(temperature) and temperature >= 0.0):
            raise ConfigError(f"the temperature of a local model is {temperature}: give a number, 0 or more")
        if importlib.util.find_spec("xllamacpp") is None:
            raise MissingExtraError(extra="local", needed_for="models on this machine")
        self._path = path
        self._name = name or (SMOLLM2.name if path is None else path.stem)
        self._max_concurrency = max_concurrency
        self._threads = threads
        self._sampling = Sampling(temperature=temperature, max_tokens=max_tokens, seed=seed, context=context)
        self._lock = Lock()
        self._engine: Engine | None = None

    @property
    def name(self) -> str:
        """The model id that readings and calibrations carry: by default that of the weights, or the file's name."""
        return self._name

    @property
    def max_concurrency(self) -> int:
        """How many queries are worked on at once."""
        return self._max_concurrency

    @property
    def process(self) -> int | None:
        """The number of the process in which the weights are, None while there is none."""
        engine = self._engine
        return None if engine is None or engine.ended else engine.pid

    async def ask(self, query: Query) -> Reply:
        """Answer one query. Raises ModelError."""
        line = Line()
        try:
            # A limiter of its own: a caller that was cancelled must not take a place among the host's threads.
            return await to_thread.run_sync(
                self._answer, query, line, abandon_on_cancel=True, limiter=CapacityLimiter(1)
            )
        finally:
            line.hang_up()

    def close(self) -> None:
        """End the process and give back its memory. Queries under way fail; a later `ask` starts it anew."""
        with self._lock:
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def _answer(self, query: Query, line: Line) -> Reply:
        return Asking(self._running(), line, name=self._name, sampling=self._sampling).reply(query)

    def _running(self) -> Engine:
        while True:
            with self._lock:
                before = self._engine
            if before is not None and not before.ended:
                return before
            # Looking at the weights takes its time, and is no affair of whoever closes the model meanwhile.
            engine = Engine(
                checked(SMOLLM2.path(), SMOLLM2) if self._path is None else _gguf(self._path),
                slots=self._max_concurrency,
                threads=self._threads,
                context=self._sampling.context,
            )
            with self._lock:
                if self._engine is before:
                    self._engine = engine


def _gguf(path: Path) -> Path:
    try:
        with path.open("rb") as file:
            begins = file.read(len(_MAGIC))
    except OSError as error:
        raise ModelError(f"the weights at {path} cannot be read ({error.strerror}): name a GGUF file") from error
    if begins != _MAGIC:
        raise ModelError(f"{path} is no GGUF file: name one, or leave `path` out for the bundled weights")
    return path
