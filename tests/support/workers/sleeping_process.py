"""A process that does nothing until it is killed."""

import time
from typing import NoReturn


def main() -> NoReturn:
    while True:
        time.sleep(3600.0)
