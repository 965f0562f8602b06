"""Confidences in a checkpoint's answers to given examples: `dualread.confidences`, and `dualread answer`.

The examples and the checkpoint become a study in memory, whose stages run in this process, one after the other. So
every number is that of a study with the same rows, and what a call has finished, the next one finds in its store.

`examples` turns dicts and frames into rows and images, `study` says what is asked and fitted, `jobs` is the list of
stages with their inputs, and `confidences` runs them and returns the frame.
"""
