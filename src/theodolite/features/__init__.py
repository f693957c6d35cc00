"""What several detectors need, folded from events once a session."""
