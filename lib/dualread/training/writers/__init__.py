"""Writers: each writes a phantom hospital in the official format of one real data set; one writer per file.

A phantom hospital is a made-up data set. `Hospital` describes it: how many `phantoms` it has in each
split, what they look like, and how many questions are asked about each. A writer draws the phantoms and
writes the files that the real data set would have, with the known defects of the real files. So the loader of the real
data set reads them, and a study on phantoms takes the same way as a study on real data.
"""
