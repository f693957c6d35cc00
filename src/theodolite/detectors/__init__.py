"""The detectors. Each reads events and says what it makes of them; none knows of another."""
