"""Alarms with a stated false-alarm rate: thresholds that are fitted to labelled sessions, and what they are worth."""
