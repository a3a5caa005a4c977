"""Programs that the benchmark runs as child processes, some in environments of their own.

The baselines' import nothing of the project but `answer`.
"""
