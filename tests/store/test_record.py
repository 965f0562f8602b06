import os
import subprocess
import sys

from dualread.store.record import is_alive


def test_a_zombie_is_not_alive():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert is_alive(child.pid)
    child.kill()
    os.waitid(
        os.P_PID, child.pid, os.WEXITED | os.WNOWAIT
    )  # a zombie: it has ended but is still in the list of processes
    os.kill(child.pid, 0)
    assert not is_alive(child.pid)
    child.communicate()
    assert not is_alive(child.pid)
