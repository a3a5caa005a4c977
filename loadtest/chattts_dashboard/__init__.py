"""A real Prometheus beside a server, and what it says about it."""
