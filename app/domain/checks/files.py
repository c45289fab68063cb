"""What the state of a file says about the runs in it."""

from app.domain.run import Flag

UNKNOWN_SCHEMA = "unknown_schema"
TRUNCATED_FILE = "truncated_file"


def cut_off(left_out: str) -> Flag:
    """The file ends too early. What the missing part would have changed is not known, so every run of the file says that there is one."""
    return Flag(TRUNCATED_FILE, left_out)
