from dualread.training.rewards import supported_claims
from dualread.training.rewards.base import verdicts

REFERENCE = ["Axial CT image. The head is shown.\nNo lesion in this image."]


def test_reward_is_the_share_of_supported_sentences_plus_format():
    stated = "<confidence>80</confidence>"
    completions = [
        f"<answer>Axial CT image. Image of the head. There is evidence of no lesion.</answer>{stated}",
        f"<answer>Axial CT image. Image of the head. One lesion in this image. Nothing known.</answer>{stated}",
        "<answer>CT in axial plane.</answer>",
        f"<answer>Coronal CT image.</answer>{stated}",
        "Axial CT image.",
    ]
    references = [REFERENCE] * len(completions)
    graded = verdicts(completions, references, supported_claims.CONTRACT)
    # 3/3; 2/4, as an unknown sentence counts; 1/1 - .5; 0/1; no answer block: 0 - .5
    assert supported_claims.reward(graded, reference_answers=references) == [1.0, 0.5, 0.5, 0.0, -0.5]
