"""Show a page in a real browser. Debian's package: apt-get install chromium."""

import shutil
import subprocess

import pytest

CHROMIUM = shutil.which("chromium")
_OPTIONS = ("headless", "no-sandbox", "disable-gpu", "no-first-run", "disable-background-networking", "disable-sync")
FLAGS = [f"--{option}" for option in _OPTIONS]
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH (apt-get install chromium)")


def chromium(page, tmp_path, *arguments, address=""):
    """Return the output of the browser, and its console messages, which include refused requests.

    `address` follows the page's own, such as "#verdict=wrong".
    """
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", *arguments]
    command += ["--enable-logging=stderr", "--hide-scrollbars", page.as_uri() + address]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return run.stdout, [line for line in run.stderr.splitlines() if "CONSOLE" in line]
