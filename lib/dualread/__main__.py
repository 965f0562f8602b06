"""`python -m dualread` is the program `dualread`."""

import sys

from dualread.commands.main import main

sys.exit(main())
