"""Load tests: who calls, what they say, what they saw, and what follows from it."""
