"""OpenAI Chat Completions message lists: bare, under `messages`, or one of these a line."""

from theodolite.readers.openai_chat.reader import OpenAIChat

__all__ = ("OpenAIChat",)
