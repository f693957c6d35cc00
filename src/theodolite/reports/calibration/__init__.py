"""A calibration artefact, told: what it rests on, what its thresholds do, how two differ, what other sessions say."""
