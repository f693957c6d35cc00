"""Anomaly: what the last calls of a session do together, scored, and three single acts that need no score."""
