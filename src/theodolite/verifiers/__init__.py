"""Second opinions, asked for where a reading is ambiguous."""
