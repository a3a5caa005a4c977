"""The soak test behind loadtest/soak.py: mixed traffic, a watch on the server, a verdict."""
