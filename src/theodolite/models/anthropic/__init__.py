"""Models of Anthropic, over its Messages."""

from theodolite.models.anthropic.model import AnthropicModel

__all__ = ("AnthropicModel",)
