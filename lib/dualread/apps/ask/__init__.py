"""`dualread ask`: what a service still has to be asked for a study of given answers, and sending it.

`study` says what the study asks and which of it is answered; `sending` writes the requests, or sends them and keeps
what comes back.
"""

import argparse
import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dualread.apps.text import check_repository
from dualread.errors import ConfigError

if TYPE_CHECKING:
    from dualread.apps.ask.sending import Endpoint

HELP = "write, and send, what a service is to be asked for a study"
DESCRIPTION = """
Write the requests of a study whose answers a service gives (`answers` of an actor), as JSON lines in the format of the
Batch API: which questions about which images, donor images, samples, and questions about the service's own answers.
Only what is not answered yet is written. Run it in the folder of the repository, with the study's files:

  snakemake --cores 2 --configfile mine.yaml questions     build the tables of questions
  dualread ask mine.yaml                                   write ANSWERS/requests-001.jsonl, ...
  dualread ask mine.yaml --run --to https://api.example.com/v1 --key EXAMPLE_KEY
  snakemake --cores 8 --configfile mine.yaml               read ANSWERS/responses/*.jsonl, and build the tables

Put the output files of a batch service into ANSWERS/responses, or let --run send the requests one by one. --run needs
an address and the name of an environment variable that holds the key; nothing is sent without both. Responses are
appended as they come to ANSWERS/responses/sent.jsonl; a run that was ended goes on where it stopped. Questions about
the service's own answers, such as P(True), can only be asked when these are there: without --run, write twice.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    parser.add_argument("study", metavar="STUDY", type=Path, nargs="+", help="the study's files, as after --configfile")
    parser.add_argument(
        "--images",
        default="data",
        metavar="HOW",
        help="how images travel: data (inside the request), file (their paths), or an address where they were put"
        " (default: data)",
    )
    parser.add_argument(
        "--linked",
        action="store_true",
        help="also ask about pictures that are behind links out of a data set's folder, which may be any of your files",
    )
    add_sending_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Write or send what is still to be asked; return 0, or 1 if requests that were sent are not answered."""
    from dualread.apps.ask.study import Asking, written
    from dualread.study.files import load

    check_repository()
    if options.images not in ("data", "file") and not options.images.startswith(("http://", "https://")):
        raise ConfigError(f"--images {options.images}: expected data, file, or an address (https://...).")
    endpoint = endpoint_of(options)
    asking = Asking(load(options.study, Path()), options.study, images=options.images, linked=options.linked)
    n_failed = 0
    if endpoint is not None:
        n_failed = sum(endpoint.send(folder, partial(asking.batches, folder)) for folder in asking.folders)
    for line in written(asking):
        print(line)
    return 1 if n_failed else 0


def add_sending_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say whether, where and how fast requests are sent."""
    parser.add_argument("--run", dest="sends", action="store_true", help="send the requests")
    parser.add_argument("--to", metavar="URL", help="with --run: the service, such as http://localhost:8000/v1")
    parser.add_argument("--key", metavar="NAME", help="with --run: the environment variable that holds the key")
    parser.add_argument("--at-once", type=int, default=4, metavar="N", help="requests under way at once (%(default)s)")
    parser.add_argument("--per-minute", type=int, default=60, metavar="N", help="requests per minute (%(default)s)")
    parser.add_argument(
        "--timeout", type=float, default=120.0, metavar="SECONDS", help="longest wait for a reply (%(default)s)"
    )


def endpoint_of(options: argparse.Namespace) -> "Endpoint | None":
    """Return where and how fast requests are sent; None if they are not.

    Raises:
        ConfigError: There are options of sending without --run, or one of them is missing or wrong with it.
    """
    if not options.sends:
        if options.to or options.key:
            raise ConfigError("--to and --key are for sending. Add --run, or leave them out.")
        return None
    if not options.to or not options.key:
        raise ConfigError("--run: expected --to URL, the service's address, and --key NAME, the variable with its key.")
    try:
        parts = urlsplit(options.to)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # such as a port of 99999
        is_address = False
    if not is_address:
        address = "..." if "@" in options.to else options.to
        raise ConfigError(f"--to {address}: expected an address, such as https://api.example.com/v1.")
    if not (key := os.environ.get(options.key, "").strip()) or not key.isascii() or not key.isprintable():
        # Whoever gives the key itself here does not want to see it in a log.
        name = options.key if re.fullmatch(r"[A-Z_][A-Z0-9_]{0,40}", options.key) else "..."
        raise ConfigError(
            f"--key {name}: no such environment variable, or it is empty or no key. Set it to the service's"
            " key; a service on this machine that needs none takes any text."
        )
    if options.at_once < 1 or options.per_minute < 1 or options.timeout <= 0:
        raise ConfigError("--at-once, --per-minute, --timeout: expected numbers above 0.")
    from dualread.apps.ask.sending import Endpoint

    return Endpoint(
        address=options.to,
        key=key,
        at_once=options.at_once,
        per_minute=options.per_minute,
        timeout_seconds=options.timeout,
    )
