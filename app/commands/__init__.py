"""The commands, one file per kind of thing they do: each parses, calls a service and prints."""
