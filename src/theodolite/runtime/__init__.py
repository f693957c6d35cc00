"""The only shell around the pure parts: time, locks, tasks, and the order of things."""
