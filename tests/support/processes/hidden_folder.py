"""Hide a folder from a command by a tmpfs in a mount namespace, as from a node that does not see the folder."""

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
