"""`python -m app` does what `phaseline` does."""

from app.cli import main

main()
