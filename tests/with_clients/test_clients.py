"""The clients that people have, with what they send by default: whole, as a stream, second turns, tools of none.

`make test-clients` installs them into an environment of their own; `asking.py` runs there.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from dualread.grading.contracts import single
from tests import tiny
from tests.apps.score import small
from tests.apps.serve.running import opened, serving, whole_answers

ASKING = Path(__file__).with_name("asking.py")
WHOLE = {"whole", "second turn", "tools of none"}
# How each client asks, and for which of these it keeps a confidence: a second turn is nothing that readers know.
STREAM = {"stream", "turn after a stream"}
CLIENTS = {
    "openai": (WHOLE | STREAM | {"helper"}, {"whole", "stream", "helper", "tools of none"}),
    "litellm": (WHOLE | STREAM, {"whole", "stream", "tools of none"}),
    "langchain": (WHOLE | STREAM, {"whole", "stream", "tools of none"}),
    # What this untrained actor says to `max_tokens=2048` goes on behind the limit that readers know.
    "inspect": (WHOLE | {"stream", "long"}, {"whole", "stream", "tools of none"}),
    "lm_eval": (WHOLE | {"several stops"}, set()),
}
# litellm asks for its price list at import, unless this says that the list in its package will do.
ALONE = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "HF_HUB_OFFLINE": "1"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clients")
    study = small.build(tiny.build("qwen3_vl", folder / "checkpoint"), folder / "results" / "small")
    tiny.image(1).save(folder / "x.png")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(single, "parse", whole_answers)
        with opened(study) as service, serving(service) as running:
            yield f"{running.address}/v1", folder / "x.png"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_gets_its_answers_and_the_confidences_where_it_keeps_them(server, client):
    command = [os.environ["CLIENTS_PYTHON"], str(ASKING), client, *map(str, server)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **ALONE})
    assert done.returncode == 0, done.stderr[-3000:]
    printed = [line for line in done.stdout.splitlines() if line.startswith("{")]  # litellm prints between them
    found = {row["how"]: row for row in map(json.loads, printed)}
    asked, judged = CLIENTS[client]
    assert found.keys() == asked
    assert all(row["text"] for row in found.values())
    assert {how for how, row in found.items() if row["confidence"] is not None} == judged
    assert len({found[how]["confidence"] for how in judged}) <= 1
