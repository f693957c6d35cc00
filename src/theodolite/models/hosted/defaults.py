"""What holds for every hosted model where nothing else is said."""

from __future__ import annotations

__all__ = ("MAX_CONCURRENCY", "MAX_TOKENS", "TIMEOUT", "TOP_LOGPROBS")

# Our choice: a comparison has two sides, and four sessions are probed beside each other without waiting.
MAX_CONCURRENCY = 8
# Our choice: an answer to a probe is a sentence, a structured one some hundred tokens; what a reasoning model thinks
# counts too.
MAX_TOKENS = 1024
# Seconds for one request with all its attempts, where nobody outside sets less, as a Panel does: the default of the
# OpenAI and Anthropic SDKs.
TIMEOUT = 600.0
# As many alternatives to a token as OpenAI gives; its API reference.
TOP_LOGPROBS = 20
