"""What `import theodolite` and the command line cost over a bare interpreter.

Usage: python benchmarks/startup.py [--short]. Exits with 1 when a budget is exceeded.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from timing import row

WORK = {
    "bare interpreter": "pass",
    "import json, for comparison": "import json",
    "import theodolite": "import theodolite",
    "import theodolite and its Monitor": "from theodolite import Monitor",
    "the command line, --version": "import sys; sys.argv = ['theodolite', '--version']\n"
    "from theodolite.cli.main import run\nrun()",
}
HEAVY = ("sqlalchemy", "openai", "anthropic", "pydantic", "numpy", "typer", "rich")


def seconds(code: str, runs: int) -> float:
    """Return the median time of a fresh interpreter that runs some code."""
    times: list[float] = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)  # noqa: S603 - our own code
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> int:
    """Print the times; return 1 when a budget is exceeded or something heavy was loaded."""
    runs = 5 if "--short" in sys.argv else 15
    times = {name: seconds(code, runs) * 1e3 for name, code in WORK.items()}
    bare = times["bare interpreter"]
    row("bare interpreter", bare, "ms")
    met = True
    for name, taken in times.items():
        if name != "bare interpreter":
            budget = 60.0 if name == "import theodolite" else None
            met &= row(f"{name}, over bare", taken - bare, "ms", budget=budget, ratio=taken / bare)
    code = f"import sys, theodolite; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603 - our own code
    print(f"loaded by import theodolite: {loaded or 'nothing heavy'}")
    return 0 if met and not loaded else 1


if __name__ == "__main__":
    raise SystemExit(main())
