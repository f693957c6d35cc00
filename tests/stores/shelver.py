"""Keeps and drops sessions on a shelf until it is killed, and tells on standard output what it begins and what is done.

Run by several processes at once, each with sessions of its own.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

from theodolite.stores.sealing import SealedShelf, Sealer

SESSIONS = 5


def main(folder: str, key: str, name: str, seed: str) -> None:
    shelf, choices = SealedShelf(Path(folder), Sealer(key.encode())), random.Random(seed)  # noqa: S311 - steps of a test
    for turn in range(10**9):
        session = f"{name}-{choices.randrange(SESSIONS)}"
        drops = choices.random() < 0.2
        saved = f"{session} {turn} " + "x" * choices.randrange(20_000)
        done = f"{session} {'-' if drops else turn}"
        os.write(1, f"begins {done}\n".encode())
        if drops:
            shelf.drop(session)
        else:
            shelf.keep(session, saved.encode())
        os.write(1, f"did {done}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
