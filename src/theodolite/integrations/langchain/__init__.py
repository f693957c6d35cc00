"""Watches agents of LangChain, made with `create_agent`."""

from theodolite.core.errors import MissingExtraError

try:
    from theodolite.integrations.langchain.middleware import Middleware
except ImportError as error:
    raise MissingExtraError(extra="langchain", needed_for="agents of LangChain") from error

__all__ = ("Middleware",)
