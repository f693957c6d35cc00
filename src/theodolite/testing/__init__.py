"""What ships for tests: the laws of every port as plain functions, fakes, sessions, and hypothesis strategies."""
