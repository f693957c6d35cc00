"""One plug-in of each kind, as small as it can be."""
