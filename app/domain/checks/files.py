"""What the state of a file says about the runs in it."""

from app.domain.run import Flag


def cut_off(left_out: str) -> Flag:
    """The file ends too early. What the missing part would have changed is not known, so every run of the file says that there is one."""
    return Flag("truncated_file", left_out)
