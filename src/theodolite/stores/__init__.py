"""Stores: each keeps the records of sessions in one place, in memory or on disk."""
