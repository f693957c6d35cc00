"""What it costs to read an answer to a probe: the search for a planted canary, and the whole response.

    python benchmarks/disclosure.py [--short]

Exits with 1 when a budget is exceeded. The reference of a text is the plain scan that it takes the place of: the text
in lower case, without what is no letter or digit, searched once. Texts do not hold the canary: nothing ends early.
"""

from __future__ import annotations

import argparse
import base64
import random
import re
import sys

from timing import row, spread

from theodolite.core.inquiry import Draw
from theodolite.detectors.behavior.disclosure import disclosed
from theodolite.detectors.behavior.response import read_response

CANARY = "TH-3f9ae17b04c25d86"
REPORT = (
    '{"decision": "decline", "reasoning": "The policy forbids to tell account data to anybody.", "disclosed_data": '
    'false, "policy_cited": true, "escalation_suggested": false, "tool_call_attempted": false}'
)
REFUSAL = "I'm sorry, but I can't share that. Our policy does not permit it; please contact your manager."
# Microseconds for an answer of the usual length, seconds for ten million characters.
ORDINARY, PROSE, WORST = 400.0, 0.5, 3.0
_BETWEEN = re.compile(r"[^a-z0-9]+")


def plain_scan(text: str) -> bool:
    """Look for the canary without any disguise but case and signs."""
    return _BETWEEN.sub("", CANARY.lower()) in _BETWEEN.sub("", text.lower())


def texts(size: int) -> dict[str, tuple[str, float]]:
    """Return texts of that many characters with their budgets in seconds for ten million."""
    drawn = random.Random(5)
    prose = " ".join(drawn.choices(REFUSAL.split(), k=20_000))
    reports = " ".join(drawn.choices(REPORT.split(), k=20_000))
    return {
        "prose": ((prose * (size // len(prose) + 1))[:size], PROSE),
        "words of a report": ((reports * (size // len(reports) + 1))[:size], WORST),
        "random hexadecimal digits": (drawn.randbytes(size // 2).hex(), WORST),
        "random base64": (base64.b64encode(drawn.randbytes(size * 3 // 4)).decode()[:size], WORST),
        "Cyrillic": ("".join(drawn.choices("\u0430\u0431\u0432\u0433\u0434\u0435 ", k=1_000)) * (size // 1_000), WORST),
        "nothing but entities": ("&#51;" * (size // 5), WORST),
        "nothing but percent signs": ("%3f" * (size // 3), WORST),
        "the middle of the canary": (CANARY[9:13] * (size // 4), WORST),
    }


def main() -> int:
    """Print what each costs; return 1 when a budget is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="a million characters instead of ten")
    options = parser.parse_args()
    met = True
    for name, text in (("a report", REPORT), ("a refusal in words", REFUSAL)):
        draws = [Draw(text=text)] * (200 if options.short else 2_000)
        scan = spread(lambda draw: plain_scan(draw.text), draws).median
        search = spread(lambda draw: disclosed(draw, CANARY), draws).median
        met &= row(f"{name}, the canary", search, "us", budget=ORDINARY, ratio=search / scan)
        whole = spread(lambda draw: read_response(draw, canary=CANARY), draws).median
        met &= row(f"{name}, all of it", whole, "us", budget=2 * ORDINARY)
    size = 1_000_000 if options.short else 10_000_000
    for name, (text, budget) in texts(size).items():
        assert disclosed(Draw(text=text), CANARY) is None
        scan = spread(plain_scan, [text] * 3).median
        taken = spread(lambda given: disclosed(Draw(text=given), CANARY), [text] * 3).median
        bound = budget * size / 10_000_000
        met &= row(f"{name}, {size // 1_000_000} million", taken / 1e6, "s", budget=bound, ratio=taken / scan)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
