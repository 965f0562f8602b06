"""Untrained models of meaning of real architectures: classifiers of pairs of texts, encoders, and judges."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "is", "where", "the", "left", "right", "upper", "lung", "liver", "heart"]
SIZES = {
    **{"vocab_size": len(WORDS), "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2},
    **{"intermediate_size": 24, "max_position_embeddings": 24, "initializer_range": 1.0},
}
LABELS = ("CONTRADICTION", "NEUTRAL", "ENTAILMENT")


def classifier(folder: Path, labels: tuple[str, ...] = LABELS) -> Path:
    """A DeBERTa-v2 with large weights, so that its classes vary."""
    torch.manual_seed(0)
    config = DebertaV2Config(**SIZES, id2label=dict(enumerate(labels)), relative_attention=True)
    return _saved(DebertaV2ForSequenceClassification(config), folder)


def encoder(folder: Path, *, with_head: bool = False) -> Path:
    """A BERT; with a head that classifies, it has the classes that transformers names if nobody does."""
    torch.manual_seed(0)
    model = (BertForSequenceClassification if with_head else BertModel)(BertConfig(**SIZES))
    return _saved(model, folder)


def chat_model(folder: Path, template: str | None = "[CLS]{{ messages[0]['content'] }}[SEP]") -> Path:
    """A Llama whose words are those of questions and answers."""
    torch.manual_seed(0)
    sizes = {**SIZES, "max_position_embeddings": 256, "eos_token_id": 4}
    return _saved(LlamaForCausalLM(LlamaConfig(**sizes)), folder, template)


def _saved(model, folder: Path, template: str | None = None) -> Path:
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
    fast.chat_template = template
    fast.save_pretrained(folder)
    model.save_pretrained(folder)
    return folder
