"""Readers of claims, of a tiny actor that has learned to say a report to each of some questions."""

from pathlib import Path

from dualread.models import own_pass, prompts
from dualread.models.replay.rules import rules
from dualread.readers.requirements import NAME
from dualread.schema.answers import Decoding
from tests.apps.score import small
from tests.tiny import Tiny, build, image

# What is said to each question: abbreviations, numbers and a list; a block that is never closed; and one claim alone.
SAID = {
    "Report?": "<reasoning>A ct. So.</reasoning>\n<answer>No effusion. Size 1.2 cm. Dr. Who saw no. 3.\n- Clear. No."
    "</answer>\n<confidence>70</confidence>",
    "Open?": "<answer>Axial ct. The lesion is small. It is",
    "Short?": "<answer>A scan.</answer><confidence>5</confidence>",
}
CLAIMS = {
    "Report?": ["No effusion.", "Size 1.2 cm.", "Dr. Who saw no. 3.", "Clear.", "No."],
    "Open?": ["<answer>Axial ct.", "The lesion is small.", "It is"],
    "Short?": ["A scan."],
}
N_TOKENS = 120


def study(family: str, folder: Path, **sizes: int) -> small.Study:
    """The readers, and the actor."""
    tiny = build(family, folder / "checkpoint", **{"hidden_size": 64, **sizes})
    _learn(tiny)
    decoding = Decoding(**small.DECODING | {"max_completion_tokens": N_TOKENS})
    required = small.requirements(tiny.checkpoint, decoding=decoding, spans="sentences")
    replay = {**small.REPLAY, "positions": rules(None, of_claims=True)}
    return small.build(tiny, folder / "results" / "small", replay=replay, **{NAME: required.model_dump()})


def _learn(tiny: Tiny) -> None:
    import torch

    opened = tiny.open()
    model, encoder = opened.model, opened.encoder
    ends = min(opened.encoder.stop)
    said = {q: [*encoder.tokenizer(text, add_special_tokens=False)["input_ids"], ends] for q, text in SAID.items()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    model.train()
    losses = [1.0]
    while max(losses[-3:]) > 0.03:
        loss = torch.zeros(())
        for question, ids in said.items():
            shown = image(len(losses))
            prompt = encoder.prompt(prompts.render("shared", question=question), images=[shown], row=question)
            inputs = {name: torch.tensor([v]) for name, v in {"input_ids": prompt.token_ids, **prompt.types}.items()}
            inputs |= {name: tensor for name, tensor in prompt.image.items() if name != "num_crops"}
            logits = own_pass.read(model, inputs, ids, 0).logits[0, -len(ids) - 1 : -1]
            loss = loss + torch.nn.functional.cross_entropy(logits, torch.tensor(ids))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        assert len(losses) < 1000, losses[-1]
    model.eval().save_pretrained(tiny.checkpoint)
