"""Other architectures than Qwen3-VL, and another prompt: answers and confidences are those of `score`."""

import asyncio

import openai
import pytest

from dualread.apps.score.scorer import Scorer
from dualread.models import prompts
from dualread.models.backbones.checkpoint import open_checkpoint
from dualread.models.probe import probe
from dualread.readers.requirements import NAME
from dualread.schema.recorded import PromptText
from tests import families
from tests.apps.score import small
from tests.apps.serve.running import LESION, opened, serving, user
from tests.tiny import Tiny, image

ASKED = [(image(i % 3), f"{LESION} {i % 4}") for i in range(8)]


@pytest.fixture(
    scope="module", params=[("gemma3", None), pytest.param(("idefics3", "vanilla"), marks=pytest.mark.rest)], ids=str
)
def study(request, studies, tmp_path_factory):
    family, prompt = request.param
    if prompt is None:
        return studies(family)
    folder = tmp_path_factory.mktemp(family)
    checkpoint = families.build(family, folder / "checkpoint")
    facts = probe(open_checkpoint(checkpoint, families.SETTINGS), family).facts
    asked = PromptText(name=prompt, sha256=prompts.template_sha256(prompt))
    required = small.requirements(checkpoint, model=families.SETTINGS, facts=facts.model_dump(), prompt=asked)
    tiny = Tiny(family=family, checkpoint=checkpoint)
    return small.build(tiny, folder / "results", **{NAME: required.model_dump()})


def test_other_families_and_prompts_are_served_as_they_are_scored(study):
    scorer = Scorer.load(study.reader("dualread"), study.actor)
    scored = [scorer(*one) for one in ASKED]
    with opened(study) as service, serving(service) as server:
        asyncio.run(_all_at_once(server, scored))
        for messages in ([user(LESION)], [user(ASKED[0][0], ASKED[1][0], LESION)]):
            reply = server.ask(messages=messages).choices[0]
            assert reply.dualread["confidence"] is None
            assert reply.dualread["notes"][0].startswith("no confidence: there are ")


async def _all_at_once(server, scored):
    """The official asynchronous client, half of whose requests are streams."""
    async with openai.AsyncOpenAI(base_url=f"{server.address}/v1", api_key="none", max_retries=0) as client:

        async def one(i):
            sent = {"model": "dualread", "messages": [user(*ASKED[i])]}
            if i % 2:
                async with client.chat.completions.stream(**sent) as stream:
                    try:
                        final = await stream.get_final_completion()
                    except openai.LengthFinishReasonError as error:  # so the helper says that an answer was cut off
                        final = error.completion
                return final.choices[0].message.content, final.choices[0].message.dualread
            choice = (await client.chat.completions.create(**sent)).choices[0]
            return choice.message.content, choice.dualread

        for (text, judged), of in zip(await asyncio.gather(*map(one, range(len(ASKED)))), scored, strict=True):
            assert text == of.completion
            assert judged["confidence"] == pytest.approx(of.confidence, abs=2e-6)
            assert judged["psr"] == pytest.approx(of.psr, abs=2e-6)
