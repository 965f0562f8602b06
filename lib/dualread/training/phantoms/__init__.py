"""Phantoms: drawn images that resemble medical ones, and questions about them with known answers.

A phantom is an image that a program draws from a description, its scene. A model that never sees a real image can learn
to answer questions about phantoms, so a whole study can run in minutes and without a download. `scene` draws;
`questions` asks and answers.

A phantom hospital is a data set of phantoms: see `dualread.training.writers`.
"""
