"""Anthropic message lists with content blocks: bare, as request, with their response, or some of these."""

from theodolite.readers.anthropic_messages.reader import AnthropicMessages

__all__ = ("AnthropicMessages",)
