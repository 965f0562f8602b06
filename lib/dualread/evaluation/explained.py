"""What metrics mean, in words: in a few for `dualread evaluate --all`, in sentences for captions of printed tables.

No value depends on them: an edit here computes none again. {unit} and {units} are what is resampled, such as images.
"""

# What is known of a sample, not of confidences: first of its images and pairs, then of each CCG-AUC.
COUNTS = {
    "images_with_right": "{units} with right answers",
    "images_with_wrong": "{units} with wrong answers; AUROC and AURC rest on the fewer of the two",
    "images_in_effect": "{units} of equal size, as unequally shared; if uneven, fewer than 6 have no interval",
    "decisive_pairs": "pairs that are correct on the right image and wrong on the donor",
    "source_images": "distinct source {units} of these pairs",
    "donor_images": "distinct donor {units} of these pairs",
    "strict_decisive_pairs": "those of the pairs with equal answers on both images",
    "strict_source_images": "distinct source {units} of the latter",
    "strict_donor_images": "distinct donor {units} of the latter",
    "natural_ties": "share of the decisive pairs with equal confidence on both images; each counts 1/2",
    "strict_ties": "share of strict_decisive_pairs with equal confidence on both images; each counts 1/2",
    "natural_few_sources": "1 if decisive pairs have fewer than 30 source {units}: too few for a conclusion",
    "natural_few_donors": "1 if they have fewer than 30 donor {units}",
    "natural_detectable": "the natural_ccg_auc that a sample like this tells from .5 with a probability of .8",
    "strict_few_sources": "1 if pairs with equal answers have fewer than 30 source {units}",
    "strict_few_donors": "1 if they have fewer than 30 donor {units}",
    "strict_detectable": "the strict_ccg_auc that a sample like this tells from .5 with a probability of .8",
}
# All others that `dualread evaluate` knows.
METRICS = {
    "accuracy": "share of correct answers",
    "auroc": "probability that a correct answer has more confidence than a wrong one; .5 is chance",
    "within_question_auroc": "AUROC over pairs of answers to one question; .5 is chance",
    "ece15": "calibration error over 15 bins; lower is better",
    "ece15_noise_floor": "95% of calibrated confidences have a smaller ece15; the others reach it by chance",
    "squared_calibration_error": "squared calibration error without the part of chance; 0 if calibrated",
    "brier": "mean squared difference of confidence and correctness; lower is better",
    "aurc": "mean error rate of the k most confident answers, over all k; lower is better",
    "hce90": "share of all answers that are wrong with confidence .9 or more; lower is better",
    "calibration_in_the_large": "0 if confidence is right on average; negative if it is too high",
    "calibration_slope": "1 if calibrated; below 1 if confidences are too extreme",
    "ece15_equal_mass": "calibration error over 15 bins of about equally many answers; lower is better",
    "log_loss": "mean of -log of what the confidence gave to what happened; lower is better, .693 says nothing",
    "brier_reliability": "part of brier: squared calibration error over 15 bins, with that by chance; lower is better",
    "brier_resolution": "part of brier, subtracted: how far confidence tells answers apart; higher is better",
    "brier_uncertainty": "part of brier that no confidence changes: accuracy * (1 - accuracy)",
    "aupr_errors": "average precision of finding wrong answers by low confidence; error_rate is chance",
    "error_rate": "share of wrong answers: the aupr_errors of a constant confidence",
    "fpr_at_95_tpr": "share of wrong answers kept where confidence keeps 95% of the right ones; lower is better",
    "auarc": "mean share of correct answers among the k most confident, over all k: 1 - aurc; higher is better",
    "e_aurc": "aurc minus that of the best order of these answers; 0 is best",
    "prediction_rejection_ratio": (
        "1 if rejection by confidence keeps the fewest errors, 0 as by chance, negative if worse"
    ),
    "confidence_entropy": "entropy of the valid confidences in bits; 0 if all answers have the same",
    "natural_ccg_auc": "share of decisive pairs with more confidence on the right image; .5 is no response",
    "strict_ccg_auc": "natural_ccg_auc of the pairs whose two answers are equal; .5 is no response",
    "accuracy_real": "share of correct answers on the right images of pairs",
    "accuracy_donor": "share of correct answers on the donor images of pairs",
    "vrs": "accuracy_real minus accuracy_donor",
    "vbr": "share of pairs that are correct on the right image and wrong on the donor",
}
# In printed tables.
CAPTIONS = {
    "ece15": (
        "ECE: expected calibration error over 15 bins. It has no interval, because it contains an error by "
        "chance, which resamples would add once more."
    ),
    "squared_calibration_error": (
        "CE²: squared calibration error over 15 bins, from pairs of answers about different {units}, which "
        "contains no error by chance: it is 0 on average where confidences are calibrated, and can be negative. "
        "Its intervals leave out each {unit} in turn."
    ),
    "aurc": "AURC: area under the risk-coverage curve.",
    "hce90": (
        "HCE@.9: high-confidence errors, the share of all answers that are incorrect with a confidence of at least .9."
    ),
    "natural_ccg_auc": (
        "CCG-AUC: share of the decisive pairs in which confidence is higher on the source image than on the donor "
        "image; ties count one half, so .500 means no response to the image. The donor has the same question and "
        "another reference answer; a pair is decisive if the answer is correct on the source image and incorrect "
        "on the donor image. Natural: all decisive pairs; Strict: those with the same answer on both images."
    ),
}
