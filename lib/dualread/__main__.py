"""`python -m dualread` is the program `dualread`."""

import sys

from dualread.cli import main

sys.exit(main())
