"""What each metric means, in a line."""

# Printed by default.
SHORT = (
    *("accuracy", "auroc", "ece15", "squared_calibration_error", "brier", "aurc"),
    *("natural_ccg_auc", "strict_ccg_auc"),
)

METRICS = {
    "accuracy": "share of correct answers",
    "auroc": "probability that a correct answer has more confidence than a wrong one; .5 is chance",
    "within_question_auroc": "the same, over pairs of answers to one question",
    "ece15": "calibration error over 15 bins; lower is better",
    "ece15_noise_floor": "95% of calibrated confidences have a smaller ece15; the others reach it by chance",
    "squared_calibration_error": "squared calibration error without the part of chance; 0 if calibrated",
    "brier": "mean squared difference of confidence and correctness; lower is better",
    "aurc": "mean error rate of the k most confident answers, over all k; lower is better",
    "hce90": "share of all answers that are wrong with confidence .9 or more; lower is better",
    "calibration_in_the_large": "0 if confidence is right on average; negative if it is too high",
    "calibration_slope": "1 if calibrated; below 1 if confidences are too extreme",
    "natural_ccg_auc": "share of decisive pairs with more confidence on the right image; .5 is no response",
    "strict_ccg_auc": "the same, where both answers are equal",
    "accuracy_real": "share of correct answers on the right images of pairs",
    "accuracy_donor": "share of correct answers on the donor images of pairs",
    "vrs": "accuracy_real minus accuracy_donor",
    "vbr": "share of pairs that are correct on the right image and wrong on the donor",
}
COUNTS = {
    "images_with_right": "images with right answers",
    "images_with_wrong": "images with wrong answers; AUROC and AURC rest on the fewer of the two",
    "decisive_pairs": "pairs that are correct on the right image and wrong on the donor",
    "source_images": "distinct right images of these pairs",
    "donor_images": "distinct donor images of these pairs",
    "strict_decisive_pairs": "those of the pairs with equal answers on both images",
    "strict_source_images": "distinct right images of the latter",
    "strict_donor_images": "distinct donor images of the latter",
    "natural_ties": "share of the decisive pairs with equal confidence on both images; each counts 1/2",
    "strict_ties": "the same for the pairs with equal answers",
    "natural_few_sources": "1 if decisive pairs have fewer than 30 right images: too few for a conclusion",
    "natural_few_donors": "1 if they have fewer than 30 donor images",
    "natural_detectable": "the natural_ccg_auc that a sample like this tells from .5 with a probability of .8",
    "strict_few_sources": "1 if pairs with equal answers have fewer than 30 right images",
    "strict_few_donors": "1 if they have fewer than 30 donor images",
    "strict_detectable": "the strict_ccg_auc that a sample like this tells from .5 with a probability of .8",
}
