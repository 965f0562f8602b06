"""Sentences that explain in a caption what several tables abbreviate, so that each table can be read alone."""

SPREAD = "Mean over seeds, with the sample standard deviation as subscript where there are several"
CCG = (
    "CCG-AUC: of the decisive pairs, whose question is answered rightly on its own image and wrongly on the image of "
    "its donor (same question, other gold answer), the share with more confidence on the own image; ties count one "
    "half, so .500 is no response. Natural: all these pairs; Strict: those with the same answer to both images."
)
ECE = "ECE: expected calibration error over 15 bins."
AURC = "AURC: area under the risk-coverage curve."
HCE = "HCE@.9: share of all questions that are answered wrongly with a confidence of at least .9."
OOD = "OOD: out of distribution."
