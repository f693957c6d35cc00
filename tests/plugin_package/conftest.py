"""Nothing in here is a test; one module breaks when it is imported, as it should."""

collect_ignore = ["src"]
