"""OpenAI Responses items: bare, as request, as response, as both, or some of these."""

from theodolite.readers.openai_responses.reader import OpenAIResponses

__all__ = ("OpenAIResponses",)
