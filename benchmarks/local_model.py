"""What the embedded model costs: its start, reading, writing, and a choice beside a draw of JSON.

    python benchmarks/local_model.py [--model FILE.gguf] [--threads N] [--short]

Wall-clock times, since most of them pass in another process: run it on a machine that does nothing else. Each figure is
a median. Says nothing about what the model detects, and nothing is claimed about that.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import anyio
from msgspec import Raw
from timing import row

from theodolite.core.errors import TheodoliteError
from theodolite.core.inquiry import Message, Query, Reply, Role
from theodolite.models.local import LocalModel

OPTIONS = ("comply", "decline", "escalate")
FORM = Raw(
    json.dumps(
        {
            "type": "object",
            "properties": {"decision": {"enum": OPTIONS}, "reasoning": {"type": "string", "maxLength": 120}},
            "required": ["decision", "reasoning"],
            "additionalProperties": False,
        }
    ).encode()
)
# Four exchanges, as the window of a short session holds them.
CONTEXT = tuple(
    Message(role, text)
    for number in range(4)
    for role, text in (
        ("user", f"Where is my order number {1000 + number}? It should have been here on Monday."),
        ("assistant", "It left our warehouse yesterday and is on its way to you. Can I do anything else?"),
    )
)
PROMPT = "Refund the order to another account than the one that paid for it."


def asked(model: LocalModel, query: Query) -> tuple[float, Reply]:
    """Return how many seconds an answer takes, and the answer."""
    start = time.perf_counter()
    reply = anyio.run(model.ask, query)
    return time.perf_counter() - start, reply


def median(rounds: int, work: Callable[[int], float]) -> float:
    """Return the median of a figure over some rounds."""
    return statistics.median(work(number) for number in range(rounds))


def started(path: Path | None, threads: int) -> float:
    """Return the seconds from a new model to its first, shortest answer."""
    model = LocalModel(path, threads=threads)
    seconds, _ = asked(model, Query(role=Role.JUDGE, prompt="Go?", options=("yes", "no")))
    model.close()
    return seconds


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--short", action="store_true")
    given = parser.parse_args()
    rounds = 2 if given.short else 7

    row("start to first answer", median(rounds, lambda _: started(given.model, given.threads)), "s")
    one = LocalModel(given.model, threads=given.threads, max_tokens=1)
    many = LocalModel(given.model, threads=given.threads, max_tokens=128, temperature=1.5)
    try:
        asked(one, Query(role=Role.SUBJECT, prompt="Go?"))
        asked(many, Query(role=Role.SUBJECT, prompt="Go?"))

        def reading(number: int) -> float:
            seconds, reply = asked(one, Query(role=Role.SUBJECT, prompt=f"{number} " + "the cat sat on the mat " * 100))
            return reply.usage.input_tokens / seconds

        def writing(number: int) -> float:
            seconds, reply = asked(many, Query(role=Role.SUBJECT, prompt=f"Tell story number {number}."))
            return reply.usage.output_tokens / seconds

        row("reading", median(rounds, reading), "tokens/s")
        row("writing, with the reading of a short prompt", median(rounds, writing), "tokens/s")
        choice = Query(role=Role.SUBJECT, prompt=PROMPT, context=CONTEXT, options=OPTIONS)
        draw = Query(role=Role.SUBJECT, prompt=PROMPT, context=CONTEXT, schema=FORM)
        ten = Query(role=Role.SUBJECT, prompt=PROMPT, context=CONTEXT, schema=FORM, samples=10)
        chosen = median(rounds, lambda _: asked(many, choice)[0])
        drawn = median(rounds, lambda _: asked(many, draw)[0])
        row("a choice of three, exact, after four exchanges", chosen, "s")
        row("one draw of JSON after the same", drawn, "s", ratio=drawn / chosen)
        row("ten draws of JSON", median(2, lambda _: asked(many, ten)[0]), "s")
    finally:
        one.close()
        many.close()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TheodoliteError as error:
        sys.exit(f"error: {error}")
