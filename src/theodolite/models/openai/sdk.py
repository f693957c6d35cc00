"""OpenAI's official SDK. Imported only when a model is made: it costs most of a second."""

from __future__ import annotations

import openai

from theodolite.models.hosted.provider import SDK

__all__ = ("OPENAI",)

OPENAI = SDK(
    make=openai.AsyncOpenAI,
    keys=lambda client: (client.api_key,),
    refused=openai.APIStatusError,
    unreached=openai.APIConnectionError,
    fault=openai.OpenAIError,
    variable="OPENAI_API_KEY",
)
"""What the SDK of OpenAI has of its own."""
