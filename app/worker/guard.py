"""Stands between the agent and a measuring process, so that none outlives the agent, however that ends.

Run by its path with a bare interpreter: `python -I -S guard.py FD COMMAND…`. FD is the reading end of a pipe whose other end only the agent
holds: when it closes, the agent is gone, and the whole process group is killed, this process with it. The exit code is the command's own,
128 + the signal's number where a signal ended it.
"""

import os
import select
import signal
import subprocess
import sys

# Where memory runs out the kernel ends the measuring process rather than the agent.
_FIRST_TO_GO = b"500"


def main(arguments: list[str]) -> int:
    """Run the command in this process group until it ends or the agent does."""
    lifeline, command = int(arguments[0]), arguments[1:]
    # A handler and not SIG_IGN, which the command would inherit: TERM is for the command, whose end is waited for here.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    try:
        with open("/proc/self/oom_score_adj", "wb", buffering=0) as file:
            file.write(_FIRST_TO_GO)
    except OSError:
        pass
    child = subprocess.Popen(command)  # noqa: S603
    ended = os.pidfd_open(child.pid)
    poll = select.poll()
    poll.register(lifeline, select.POLLIN | select.POLLHUP)
    poll.register(ended, select.POLLIN)
    while True:
        ready = {number for number, _ in poll.poll()}
        if lifeline in ready:
            os.killpg(os.getpgrp(), signal.SIGKILL)
        if ended in ready:
            code = child.wait()
            return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
