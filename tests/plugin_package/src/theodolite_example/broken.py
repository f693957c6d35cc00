"""A plug-in whose package is only half installed."""

raise ImportError("libshout.so is not there")
