"""`dualread demo`: a page on this machine on which a person asks about an image and sees how far to trust the answer.

`page` answers the browser's requests and refuses those of other sites; `examples` draws the images for the first click.
"""

import argparse

from dualread.apps.score import arguments
from dualread.errors import ConfigError

HELP = "the same on a page of this machine, with drawn examples"
DESCRIPTION = """
Open a page on this machine: drop an image, ask a question, and see the answer, its confidences, and the decision at the
reader's threshold. With a second image, the page shows the same about that one, and by how much confidence drops. Drawn
images are there to begin with. Not for clinical use.

  readers=results/embedded/readers/qwen3-vl-tiny/rlvr/17
  actor=results/embedded/actors/qwen3-vl-tiny/rlvr/17
  dualread demo --reader $readers/dualread --checkpoint $actor

The address is printed when reader and actor are loaded; Ctrl-C ends the program. The page works without a network, and
nothing that is asked is stored. The program answers on 127.0.0.1 alone and refuses requests of other sites; another
user of this machine can open the page too. READER and ACTOR are as in `dualread score --help`.
"""
PORT = 8000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    arguments.add_arguments(parser)
    parser.add_argument(
        "--port", type=int, default=PORT, help="of the page's address; 0 takes a free one (%(default)s)"
    )


def run(options: argparse.Namespace) -> int:
    """Serve the page until the program is interrupted; return the exit code."""
    from dualread.apps.serve.demo.page import application, listen, server

    if not 0 <= options.port <= 65535:
        raise ConfigError(f"--port {options.port}: expected a number from 0 to 65535.")
    with listen(options.port) as listening:  # first, because loading takes long
        scorer = arguments.load(options, batch_size=2)  # the image and the second one
        host, port = listening.getsockname()
        print(f"http://{host}:{port} is ready. Ctrl-C ends the program. Not for clinical use.", flush=True)
        try:
            server(application(scorer)).run(sockets=[listening])
        except KeyboardInterrupt:  # uvicorn has closed all connections and raises it again
            print("stopped")
    return 0
