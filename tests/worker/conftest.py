"""The stand-in for NVML's library, for all tests of the worker."""

from tests.worker.drivers import library

__all__ = ["library"]  # a fixture
