"""Benchmarks, each `python -m benchmarks.NAME [--json]`; they run on data of their own and end by themselves."""
