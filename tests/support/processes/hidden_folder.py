"""A stand-in for a node that does not see a folder: a command in a mount namespace where a tmpfs hides it."""

import shutil
import subprocess
from pathlib import Path

import pytest

HIDE = 'mount -t tmpfs tmpfs "$0" && exec "$@"'  # of sh, with the folder and the command


def namespaces(folder: Path) -> str:
    """Return the option of unshare for a new mount namespace; skip the test where that is not permitted."""
    if shutil.which("unshare"):
        for option in ("-m", "-Urm"):
            command = ["unshare", option, "sh", "-c", HIDE, str(folder), "true"]
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                return option
    pytest.skip("nobody may mount a tmpfs here")
