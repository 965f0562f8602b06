"""Sentences for captions that explain the abbreviations of several tables, so that each table can be read alone."""

SPREAD = "Mean over seeds, with the sample standard deviation as subscript where there are several seeds"
CCG = (
    "CCG-AUC: share of the decisive pairs in which confidence is higher on the source image than on the donor image; "
    "ties count one half, so .500 means no response to the image. The donor has the same question and another "
    "reference answer; a pair is decisive if the answer is correct on the source image and incorrect on the donor "
    "image. Natural: all decisive pairs; Strict: those with the same answer on both images."
)
ECE = "ECE: expected calibration error over 15 bins."
AURC = "AURC: area under the risk-coverage curve."
HCE = "HCE@.9: high-confidence errors, the share of all answers that are incorrect with a confidence of at least .9."
OOD = "OOD: out of distribution."
