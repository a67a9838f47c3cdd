"""A detached command whose starter is interrupted: it does what Ctrl-C does there, and goes on until it is ended."""

from __future__ import annotations

import os
import signal

from support import stand_in

if __name__ == "__main__":
    stand_in.die_with_parent()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.kill(os.getppid(), signal.SIGINT)
    signal.sigwait({signal.SIGINT})
