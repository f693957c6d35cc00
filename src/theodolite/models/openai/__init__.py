"""Models of OpenAI and of compatible servers, over Chat Completions or Responses."""

from theodolite.models.openai.model import OpenAIModel

__all__ = ("OpenAIModel",)
