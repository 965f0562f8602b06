"""What models of meaning say in batches, against single passes."""

import itertools

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer

from dualread.errors import ArtifactError
from dualread.models.meaning import LONGEST_REPLY, embeddings, entailments, greedy_replies
from tests import meaning

TEXTS = ["left lung", "the upper left lung", "liver", "where is the right heart", "heart"]


def test_a_class_is_the_most_probable_one_of_the_pair_alone(tmp_path):
    folder = meaning.classifier(tmp_path / "nli")
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSequenceClassification.from_pretrained(folder)
    pairs = list(itertools.permutations(TEXTS, 2))
    with torch.inference_mode():
        logits = [model(**tokenizer(*pair, return_tensors="pt")).logits[0] for pair in pairs]
    expected = [meaning.LABELS[int(of.argmax())].lower() for of in logits]
    assert len(set(expected)) == 3  # the weights are random, but not all alike
    assert entailments(folder, pairs) == expected
    assert [entailments(folder, [pair[::-1]])[0] for pair in pairs] != expected  # the order counts


def test_a_vector_is_the_mean_of_the_states_of_the_text_alone(tmp_path, capsys):
    folder = meaning.encoder(tmp_path / "encoder")
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    with torch.inference_mode():
        means = [model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(dim=0) for text in TEXTS]
    expected = np.array([(mean / mean.norm()).numpy() for mean in means])
    for texts in (TEXTS, TEXTS * 40):  # in one batch, and in several
        assert embeddings(folder, texts) == pytest.approx(np.tile(expected, (len(texts) // len(TEXTS), 1)), abs=1e-6)
    embeddings(folder, ["left " * 30])
    assert "1 texts are longer than the 24 tokens that BertModel reads" in capsys.readouterr().err


def test_a_judge_replies_by_its_most_probable_tokens(tmp_path):
    folder = meaning.chat_model(tmp_path / "judge")
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    replies, ends = [], model.generation_config.eos_token_id
    for text in TEXTS:
        ids = tokenizer(f"[CLS]{text}[SEP]", add_special_tokens=False)["input_ids"]
        start = len(ids)
        while len(ids) < start + LONGEST_REPLY and ids[-1] != ends:
            with torch.inference_mode():
                ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
        replies.append(tokenizer.decode(ids[start:], skip_special_tokens=True))
    assert len({*replies}) > 1
    assert greedy_replies(folder, TEXTS) == replies


def test_other_models_are_refused(tmp_path):
    with pytest.raises(ArtifactError, match="has no chat template"):
        greedy_replies(meaning.chat_model(tmp_path / "base", template=None), ["left"])
    for folder, said in (
        (
            meaning.encoder(tmp_path / "other", with_head=True),
            "LABEL_0, LABEL_1. Expected .* entailment",
        ),
        (meaning.classifier(tmp_path / "two", ("ENTAILMENT", "NOT_ENTAILMENT")), "its classes are ENTAILMENT, NOT_E"),
        (meaning.encoder(tmp_path / "encoder"), r"lacks the weights classifier\.bias, classifier\.weight"),
        (tmp_path / "nothing", "cannot be opened"),
    ):
        with pytest.raises(ArtifactError, match=said):
            entailments(folder, [("left", "right")])
