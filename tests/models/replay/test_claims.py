"""The states of claims, against plain transformers: one row at a time, and tokens found by decoding prefixes."""

import numpy as np
import torch
from tests.architectures import both
from tests.models.plain import plain_pass
from tests.models.replay.test_forward import completion
from tests.tiny import image

from dualread.models import prompts
from dualread.models.actor import ReadSpec, Request, read_states
from dualread.models.replay.forward import VECTORS, evidence_state, middle_layer

TEXTS = [
    "<answer>upper left lesion. no fluid! axial ct</answer><confidence>77</confidence>",
    "the size of the lesion",
    "<answer>yes</answer>",
]
CLAIMS = [["upper left lesion.", "no fluid!", "axial ct"], ["the size of the lesion"], []]


def tokens_of(encoder, ids, start, end):
    """The tokens that add a character of [start, end) to the decoded text."""
    ends = [len(encoder.decode(ids[: t + 1])) for t in range(len(ids))]
    return [t for t, (left, right) in enumerate(zip([0, *ends], ends, strict=False)) if left < end and right > start]


@both
def test_each_claim_is_read_at_its_own_tokens(tiny):
    opened = tiny.open()
    model, encoder = opened.model, opened.encoder
    completions = [completion(encoder, text) for text in TEXTS]
    spans = [[(text.index(c), text.index(c) + len(c)) for c in of] for text, of in zip(TEXTS, CLAIMS, strict=True)]
    asked = [
        Request(text=prompts.render("shared", question="Report?"), images=[image(k)], image_name=str(k), row=str(k))
        for k in range(len(TEXTS))
    ]
    what = ReadSpec(kappa=0.1, depths=(0.3,), entropies=True)
    replayed = read_states(opened, asked, completions, what, batch_size=3, claims=spans)
    plain = read_states(opened, asked, completions, what, batch_size=3)
    assert [len(report.claims) for report in replayed] == [3, 1, 0]
    for request, ids, report, without, places in zip(asked, completions, replayed, plain, spans, strict=True):
        for name in VECTORS:  # claims change nothing of the whole
            np.testing.assert_array_equal(report.vectors[name], without.vectors[name])
        prompt = request.encoded(encoder)
        n, out = len(prompt.token_ids), plain_pass(model, prompt, ids, output_hidden_states=True)
        final, of_image = out.hidden_states[-1][0], torch.tensor(prompt.token_ids) == encoder.image_token_id
        log_probs = torch.log_softmax(out.logits[0, n - 1 : -1].double(), -1)[range(len(ids)), ids]
        for claim, (start, end) in zip(report.claims, places, strict=True):
            tokens = tokens_of(encoder, ids, start, end)
            assert claim.positions.answer == tuple(tokens)
            h_ans = final[[n + t for t in tokens]].mean(0)
            expected = {
                "h_pre": final[n + tokens[0] - 1],
                "h_close": final[n + tokens[-1]],
                "h_ans": h_ans,
                "h_global": final[:n][of_image].mean(0),
                "h_evid": evidence_state(h_ans, final[:n][of_image], 0.1),
                "h_mid": out.hidden_states[middle_layer(4)][0][n + tokens[-1]],
                "h_ans_at_0.3": out.hidden_states[1][0][[n + t for t in tokens]].mean(0),
                "answer_log_prob": log_probs[tokens].mean(0, keepdim=True),
            }
            assert set(claim.vectors) == set(expected)
            for name, vector in expected.items():
                np.testing.assert_allclose(claim.vectors[name], vector.numpy(), atol=2e-5, err_msg=name)
            np.testing.assert_array_equal(claim.token_log_probs, report.token_log_probs)
