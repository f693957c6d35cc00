"""A redactor by rules: patterns with checks behind them, no model, no look-up, linear time."""

from __future__ import annotations

from theodolite.redactors.rules.pseudonyms import Pseudonyms
from theodolite.redactors.rules.redactor import FREE_TEXT, VOCABULARY, RuleRedactor

__all__ = ("FREE_TEXT", "VOCABULARY", "Pseudonyms", "RuleRedactor")
