"""What a call is as behavior: from tool names, arguments, shell commands, addresses and paths to a NormalizedIntent."""

from theodolite.features.intents.fold import IntentFold
from theodolite.features.intents.names import common, forms, words

__all__ = ("IntentFold", "common", "forms", "words")
