"""Anthropic's official SDK. Imported only when a model is made: it costs more than a second."""

from __future__ import annotations

import anthropic

from theodolite.models.hosted.provider import SDK

__all__ = ("ANTHROPIC",)

ANTHROPIC = SDK(
    make=anthropic.AsyncAnthropic,
    keys=lambda client: (client.api_key, client.auth_token, client.credentials),
    refused=anthropic.APIStatusError,
    unreached=anthropic.APIConnectionError,
    fault=anthropic.AnthropicError,
    variable="ANTHROPIC_API_KEY",
)
"""What the SDK of Anthropic has of its own."""
