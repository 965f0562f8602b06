"""`dualread serve`: a server with OpenAI's API whose every answer says how far it can be trusted.

A request goes through these files in this order: `application` lets it in, `chats` takes it from its first byte to its
last, `wire` reads its JSON and its images, `chat_questions` says what is asked and whether readers know such answers,
`service` has one of the `actors` answer and the readers judge, `replies` writes what is said, and `outcome` counts,
logs and records it. `opening` opens readers and actor before the first request; `vectors` says what is read of the
pass that answers.
"""

import argparse
import os
import signal
import socket
import sys
import threading
import webbrowser
from contextlib import suppress
from functools import partial
from pathlib import Path

from dualread.apps.score import ScorerChoice, add_choice
from dualread.errors import ConfigError
from dualread.progress import say

HELP = "the same as a server, with the API of OpenAI"
DESCRIPTION = """
Answer requests to OpenAI's API for chats (/v1/chat/completions), and say in each choice, under `dualread`, how far the
answer can be trusted. BUNDLE is a folder that `dualread export` wrote, or what `dualread score --reader` takes. Not for
clinical use.

  dualread export results/embedded --backbone qwen3-vl-tiny --actor rlvr --seed 17 --out mine --with-checkpoint
  dualread serve mine

  from openai import OpenAI
  client = OpenAI(base_url="http://127.0.0.1:8000/v1", api_key="none")
  asked = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,..."}},
           {"type": "text", "text": "Is there a lesion?"}]
  reply = client.chat.completions.create(model="dualread", messages=[{"role": "user", "content": asked}])
  reply.choices[0].message.content, reply.choices[0].dualread["confidence"]

The text is the question; the reader's prompt is put around it, and the answer is greedy, as those that the reader was
fitted on. Any other request (messages of the system, several images, a temperature) is answered as it is, without a
confidence, and `notes` say why. With `stream`, PSR comes before the first token, claims of a report when their
sentences end, and all else at the end.

The server answers on this machine alone unless --host says otherwise, opens no address and no file that a request
names, and keeps and logs no question; with --record, it keeps ids, answers and confidences. SIGTERM or Ctrl-C ends it
when all that it has begun is answered.
"""
_KEY = "DUALREAD_API_KEY"
# Of `limits.ClientLimits`: how much clients may send.
_LIMITS = {
    "megabytes": (32, "of one request"),
    "images": (8, "in one request"),
    "megapixels": (50, "of all images of a request"),
    "requests": (256, "that are open at once"),
}
# After each part of a reply, the thread that has sent it waits this long for others, which may be busy in Python. By
# default it is 5 ms: 64 streams then got 15% fewer tokens, and the first one in twice the time.
_SECONDS_PER_TURN = 0.0005


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    add = parser.add_argument
    add("reader", metavar="BUNDLE", help="an exported folder, a hub repository, or a reader")
    add_choice(parser, reader=False)
    add("--host", default="127.0.0.1", help="address to listen at; 0.0.0.0 is all of them (%(default)s)")
    add("--port", type=int, default=8000, help="0 takes a free one (%(default)s)")
    add("--name", default="dualread", help="name of the model in requests (%(default)s)")
    add("--api-key", metavar="KEY", help=f"answer only who says it; better in {_KEY}, which other users cannot see")
    add(
        "--abstain-before",
        metavar="PSR",
        help="make no answer where PSR is below this number, or below the bundle's `threshold` of the method psr",
    )
    add("--engine", choices=("vllm", "transformers"), help="what answers (default: vLLM where it is installed)")
    add("--unchecked", action="store_true", help="use vLLM for a bundle without stored answers; replies say so")
    add(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="also answer requests to this name of the server, without a key (several: say it again)",
    )
    add("--batch-size", type=int, default=16, help="answers that are made at once (%(default)s)")
    for name, (most, what) in _LIMITS.items():
        add(f"--max-{name}", type=int, default=most, help=f"{what} (%(default)s)")
    add("--seconds-to-stop", type=int, default=60, help="for what is begun, at the end (%(default)s)")
    add(
        "--seconds-to-health",
        type=int,
        default=120,
        metavar="SECONDS",
        help="without any progress, until /health says that the server is stuck (%(default)s)",
    )
    add("--record", type=Path, metavar="FILE", help="keep answers and confidences, for `evaluate`, and to see drift")
    add("--log-texts", action="store_true", help="log the questions and answers, too")


def run(options: argparse.Namespace, *, shows_page: bool = False) -> int:
    """Serve until the program is told to end; `shows_page` is for `dualread demo`. Return the exit code."""
    for name in ("batch_size", *(f"max_{name}" for name in _LIMITS), "seconds_to_health"):
        if (value := getattr(options, name)) < 1:
            raise ConfigError(f"--{name.replace('_', '-')} {value}: expected at least 1.")
    if not 0 <= options.port <= 65535:
        raise ConfigError(f"--port {options.port}: expected a number from 0 to 65535.")
    from dualread.apps.serve import web
    from dualread.apps.serve.application import application
    from dualread.apps.serve.chats import Chats
    from dualread.apps.serve.opening import open_service
    from dualread.apps.serve.outcome import Outcome, Record
    from dualread.data.given_images import read
    from dualread.limits import ClientLimits
    from dualread.schema.data import ct_windows_of

    record = None if options.record is None else Record(options.record)
    key = options.api_key or os.environ.get(_KEY) or None
    windows = ct_windows_of(options.ct_windows)
    with web.listen(options.host, options.port) as listening:  # first, because loading takes long
        service = open_service(
            ScorerChoice.of(options),
            batch_size=options.batch_size,
            most_images=options.max_images,
            engine=options.engine,
            abstain_before=options.abstain_before,
            unchecked=options.unchecked,
        )

        def done(outcome: Outcome) -> None:
            outcome.log()
            if record is not None:
                for row in outcome.rows(service.loaded.readers.method):
                    record.add(row)

        chats = Chats(
            service,
            model=options.name,
            limits=ClientLimits(**{name: getattr(options, f"max_{name}") for name in _LIMITS}),
            read_image=partial(read, bits=options.bits, ct_windows=windows),
            keeps_texts=options.log_texts,
            done=done,
        )
        hosts = [socket.gethostname(), options.host, *options.allow_host]
        app = application(chats, api_key=key, hosts=hosts, stuck_seconds=options.seconds_to_health)
        server = web.server(app, connections=4 * options.max_requests, seconds_to_stop=options.seconds_to_stop)
        sys.setswitchinterval(_SECONDS_PER_TURN)
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # the server raises it again when it has ended
        with suppress(KeyboardInterrupt):  # uvicorn has closed all connections and raises it again
            _tell(options, *listening.getsockname()[:2], has_key=key is not None, shows_page=shows_page)
            server.run(sockets=[listening])
        service.close()
    if record is not None:
        record.close()
    print("stopped", flush=True)
    # Python's own end waits for threads that still read a request, and would count against the time to stop.
    os._exit(0)


def _tell(options: argparse.Namespace, host: str, port: int, *, has_key: bool, shows_page: bool) -> None:
    """Tell whoever has started the server where it is, and open its page for `dualread demo`."""
    address = f"http://{host}:{port}"
    ready = f"{address} is ready" if shows_page else f"{address}/v1 is ready, with the model {options.name}"
    print(f"{ready}. Not for clinical use.", flush=True)
    if not has_key and options.host not in ("127.0.0.1", "localhost"):
        say(f"dualread serve: everyone who reaches {host}:{port} may ask. Give --api-key to choose who.")
    if shows_page and not options.no_browser:
        # In a thread, because a browser in a terminal would be waited for, and waits for the page.
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
