"""The pure core: numbers in, numbers out. Standard library and numpy only; no web, database, settings or clock."""
