"""What models over a network share: transport, retries, breaker, and how queries are put and answers read."""
