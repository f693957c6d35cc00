"""`python -m theodolite.cli VERB`: the same as `theodolite VERB`, where no script is on the path."""

from __future__ import annotations

from theodolite.cli.main import run

if __name__ == "__main__":
    run()
