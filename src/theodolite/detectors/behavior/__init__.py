"""Behavioral probes: the same question to a copy of the session and to a clean shadow, and how their answers differ."""
