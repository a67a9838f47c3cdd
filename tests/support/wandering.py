"""The fake worker whose user's code changes the current directory, as Hydra does."""

from __future__ import annotations

import os
import tempfile

from support import fake_worker


def main(order):
    os.chdir(tempfile.gettempdir())
    fake_worker.main(order)


def main_in_thread(order):
    os.chdir(tempfile.gettempdir())
    fake_worker.main_in_thread(order)
