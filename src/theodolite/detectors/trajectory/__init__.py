"""The path of a session, against what the user asked for."""
