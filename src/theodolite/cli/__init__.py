"""The command line, one verb a module. What a verb needs is imported when it runs."""
