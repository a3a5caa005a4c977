"""The benchmark behind loadtest/bench.py: cases, checks, floors, targets, report."""
