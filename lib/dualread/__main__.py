"""`python -m dualread` is the program `dualread`."""

import sys
from pathlib import Path

# As the program `dualread` and `python -P` do: a folder that was downloaded into the working directory is no package.
if not sys.flags.safe_path and sys.path[:1] == [str(Path.cwd())]:
    del sys.path[0]

from dualread.apps.main import main

sys.exit(main())
