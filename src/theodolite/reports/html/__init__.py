"""The report as one HTML page that needs no network, no script and no other file."""
