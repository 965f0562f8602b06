"""What is declared: the settings of a study, what stages are told, and the columns of the tables that they exchange.

Each thing is declared once, as a typed, frozen model: its type, its bounds, and what it means. The meaning of a setting
stands below it, as a text that `dualread schema` prints; that of any other field is a comment. A part of a study that a
stage depends on is a field of the stage's spec as it stands. Everything else follows from the declaration: the check of
a study's files, the text of jobs and keys (`Section.to_spec`), `dualread schema`, and docs/settings.md. There is one
module per phase of the pipeline.
"""
