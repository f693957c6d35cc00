"""What each thing is: frozen types and the ports between them. No I/O, clock, randomness or async below `runtime/`."""
