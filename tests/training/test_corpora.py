"""The corpus of a real data set: each image of the split, with its questions that a tiny model can learn."""

from tests import specs
from tests.hospital import table_of

from dualread.training.corpora import slake


def test_the_corpus_has_views_of_each_image_and_answers_that_other_images_have(tmp_path):
    phantom = specs.phantom(images={"train": 6, "validation": 1, "test": 1}, questions_per_image=6)
    table = table_of(tmp_path, phantom, specs.manifest(split="train", roles="fit"))
    corpus = slake.open_corpus(slake.Settings(size=32, augmentations=2, held_out=1), table, 0)
    assert [len(subject.views) for subject in corpus.training] == [3] * 6
    assert corpus.held_out == corpus.training[:1]
    items = [item for subject in corpus.training for item in subject.items]
    assert any(item.wrong_answers for item in items)
    assert all(item.answer not in item.wrong_answers for item in items)
