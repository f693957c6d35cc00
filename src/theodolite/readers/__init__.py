"""Recorded sessions: a reader turns one recorded form into events."""
