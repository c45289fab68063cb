"""Phaseline keeps the two halves of an LLM request apart: prefill, bound by arithmetic, and decode, bound by memory."""

__version__ = "0.1.0"
