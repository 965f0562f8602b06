"""Chat templates of others end, in bounded time and memory, and reach nothing but the conversation (D5)."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from PIL import Image

from dualread import limits
from dualread.errors import ArtifactError
from dualread.models.backbones import trial
from dualread.models.backbones.checkpoint import read_config
from dualread.models.backbones.encode import Encoder
from dualread.models.backbones.processor import load_processor
from tests import families

RANGES = "{%- for a in range(99999) -%}{%- for b in range(99999) -%}{%- for c in range(99999) -%}{%- endfor -%}"
RANGES += "{%- endfor -%}{%- endfor -%}"
IF_LONG = "{%- if messages[0]['content'][-1]['text'] | length > 1000 -%}" + RANGES + "{%- endif -%}"


DOUBLED = "{%- set ns = namespace(x='x') -%}{%- for a in range(60) -%}{%- set ns.x = ns.x + ns.x -%}{%- endfor -%}"


@pytest.mark.parametrize(
    "start",
    [
        *(RANGES, IF_LONG, DOUBLED, "{{- 'x' * 10 ** 11 -}}", "{{- '%99999999999d' % 1 -}}"),
        *("{{- 'x'.center(10 ** 11) -}}", "{%- set x = 'x' | center(10 ** 11) -%}"),
        *("{%- set x = 10 ** (10 ** 10) -%}",),
    ],
)
def test_a_template_without_an_end_is_refused(folder, monkeypatch, start):
    monkeypatch.setattr(limits, "TEMPLATE_SECONDS", 1.0)
    file = folder / "chat_template.jinja"
    file.write_text(start + file.read_text())
    started = time.monotonic()
    with pytest.raises(ArtifactError, match=r"its chat template (does not end within 1 s|takes more than 1 GB)"):
        load_processor(folder, families.SETTINGS)
    assert time.monotonic() - started < 30


def test_a_template_without_an_end_for_one_question_is_refused(folder, monkeypatch):
    file = folder / "chat_template.jinja"
    asked = "{%- if 'spleen' in messages[0]['content'][-1]['text'] -%}" + RANGES + "{%- endif -%}"
    file.write_text(asked + file.read_text())
    config = read_config(folder)
    encoder = Encoder(load_processor(folder, families.SETTINGS), config, families.SETTINGS)
    picture = Image.new("RGB", (64, 64))
    assert encoder.inputs("Is this a liver?", [picture])
    monkeypatch.setattr(limits, "TEMPLATE_SECONDS", 1.0)
    started = time.monotonic()
    with pytest.raises(ArtifactError, match=r"does not end within 1 seconds for the question 'Is this a spleen\?'"):
        encoder.inputs("Is this a spleen?", [picture])
    assert time.monotonic() - started < 30
    assert encoder.inputs("Is this a liver?", [picture])  # and nothing is left behind


def test_limits_hold_in_the_main_thread(monkeypatch):
    monkeypatch.setattr(limits, "TEMPLATE_SECONDS", 0.1)
    with pytest.raises(trial.LimitError, match="takes more memory"), trial.within_limits():
        raise MemoryError
    with ThreadPoolExecutor(1) as other, trial.within_limits():
        assert other.submit(_limited).result() == 1
    with pytest.raises(trial.LimitError, match="does not end"):
        _without_end()


def _without_end():
    with trial.within_limits():
        while True:
            pass


def _limited():
    with trial.within_limits():
        return 1


@pytest.mark.parametrize(
    "start",
    [
        "{{- ''.__class__.__mro__[1].__subclasses__() -}}",
        "{{- messages.__class__.__base__.__subclasses__() -}}",
        "{{- namespace.__init__.__globals__ -}}",
        "{%- set x = raise_exception.__globals__['os'] -%}{{- x.system('true') -}}",
        "{%- include '/etc/passwd' -%}",
        "{%- import 'os' as os -%}",
        "{{- range(10 ** 9) | list -}}",
        "{{- (" * 5000,
    ],
)
def test_a_template_that_looks_for_more_than_the_conversation_is_refused(folder, start):
    file = folder / "chat_template.jinja"
    file.write_text(start + file.read_text())
    with pytest.raises(ArtifactError):
        load_processor(folder, families.SETTINGS)


def test_an_action_that_ends_is_called_here_unless_it_ends_its_process(tmp_path):
    assert trial.trouble(lambda: 1 + 1) is None
    assert trial.trouble(lambda: 1 / 0) is None  # the same error comes where it can be reported
    assert trial.trouble(lambda: (tmp_path / "x").read_text()) is None
    assert trial.trouble(lambda: os._exit(1)) == "ends its process"


def test_a_busy_machine_makes_no_template_endless(monkeypatch):
    monkeypatch.setattr(limits, "TEMPLATE_SECONDS", 0.2)
    assert trial.trouble(lambda: time.sleep(1)) is None  # as long as others compute, this process does not
    assert trial.trouble(lambda: os._exit(0)) == "ends its process"
