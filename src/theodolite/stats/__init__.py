"""Online statistics, one a file, O(1) per update."""
