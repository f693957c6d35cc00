"""How much a report for people, or for the views of other tools, says: the JSON forms leave nothing out."""

from __future__ import annotations

__all__ = (
    "ACCOUNTS",
    "ANSWERS",
    "ARGUMENTS",
    "CALLS",
    "CONTEXT",
    "FAILURES",
    "FINDINGS",
    "LARGEST",
    "LINES",
    "NAME",
    "PARTS",
    "PASSAGES",
    "PATH",
    "PIECES",
    "QUOTE",
    "ROWS",
    "SAID",
    "TOLD",
    "WHOLE",
)

# Bytes of a report. A larger one is slow to open, and mail and chat refuse it (our choice). It is less than what GitHub
# and GitLab take: 10 MB compressed, and 30 MB.
LARGEST = 5_000_000

# The longest that a name, a path, a quotation may be, in characters. A redacted quotation has at most 240, which may
# be more where they are spelled out.
NAME, PATH, QUOTE = 60, 80, 400

# What a person reads of one session before giving up: rows of its timeline, findings, calls of a finding, passages and
# other pieces of its evidence, answers of models, failures.
ROWS, FINDINGS, CALLS, PASSAGES, PIECES, ANSWERS, FAILURES = 100, 20, 10, 3, 8, 10, 10
# A timeline of so many rows is shown whole; of a longer one, this many quiet rows around each that is not. A row names
# so many signals.
WHOLE, CONTEXT, SAID = 12, 2, 6

# Calls of a finding that are told with their arguments, and arguments of a call. No recorded call that we have read has
# over 8 values.
ACCOUNTS, ARGUMENTS = 3, 10

# Sessions of one outcome that are told whole; quiet ones that are shown with a line each without being asked for; and
# entries of any other list.
TOLD, LINES, PARTS = 100, 20, 50
