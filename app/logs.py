"""What the server writes: one JSON object a line on standard output, without values of requests in it."""

import structlog


def configure_logging() -> None:
    """Use JSON lines with a UTC time; an exception is its traceback as text, never with the values of local names."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        cache_logger_on_first_use=True,
    )
