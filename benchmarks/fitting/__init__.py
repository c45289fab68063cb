"""Fits of engine profiles to published measurements: `python -m benchmarks.fit`."""
