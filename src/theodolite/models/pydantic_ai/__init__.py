"""Models of Pydantic AI."""

from theodolite.models.pydantic_ai.model import PydanticAIModel

__all__ = ("PydanticAIModel",)
