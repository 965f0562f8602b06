"""Print where the tables and figures of a finished study differ from what its files say; exit with 1 where they do."""

import sys
from pathlib import Path

from tests.workflow.recount.judge import judge

if __name__ == "__main__":
    found = judge(Path(sys.argv[1]))
    print("\n".join(found) or "every cell agrees")
    sys.exit(bool(found))
