"""One load by several HTTP clients: `python -m benchmarks.clients.NAME PORT STREAMS REQUESTS TOKENS`, each in its own process."""
