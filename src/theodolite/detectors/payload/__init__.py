"""The payload detector: each call against its published contract, exactly."""

__all__ = ()
