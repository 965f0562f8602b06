"""Python imports this at its start, wherever the folder is on PYTHONPATH: a fault in one stage's process.

FAULT (JSON) says which: at the `count`-th time that the process of `stage` raises the audit event `event` ("open",
"os.rename", "os.mkdir", "os.link", see sys.addaudithook) about a path that matches `path`, it is killed, or what
`victim` names: "group", everything that was started together with it, Snakemake included, or "server", the process
that forked it. The library knows nothing of this.
"""

import json
import os
import re
import signal
import sys

FORKED = any(word.endswith("forkserver.py") for word in sys.orig_argv)


def arm(fault):
    left = [fault.get("count", 1)]
    pattern = re.compile(fault["path"])

    def hook(event, arguments):
        if event != fault["event"] or not pattern.search(str(arguments[0])) or sys.argv[1:2] != [fault["stage"]]:
            return
        left[0] -= 1
        if left[0] == 0:
            os.write(2, f"FAULT: killed at {event} {arguments[0]}\n".encode())
            if fault["victim"] == "group":  # a forked job and its server have groups of their own
                head = int(os.environ["DUALREAD_FORKSERVER"].split("-")[1]) if FORKED else os.getppid()
                os.killpg(os.getpgid(head), signal.SIGKILL)
            if fault["victim"] == "server":
                os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


if "FAULT" in os.environ:
    wanted = json.loads(os.environ["FAULT"])
    # When the server is killed, the job starts again by itself, and that process has to live.
    if FORKED or (wanted["victim"] != "server" and "dualread.store.run" in sys.orig_argv):
        arm(wanted)
