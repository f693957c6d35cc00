"""The fuzzer's functions are among the benchmarks, which are found as they find each other."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
