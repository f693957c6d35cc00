"""Redactors: each decides what of a session's text may be kept."""
