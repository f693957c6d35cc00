"""Logs of Inspect: each sample is a session."""

from __future__ import annotations

from theodolite.readers.inspect_logs.reader import InspectLogs

__all__ = ("InspectLogs",)
