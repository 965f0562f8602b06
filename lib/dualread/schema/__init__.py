"""What is declared: the settings of a study, what stages are told, and the columns of the tables that they exchange.

Each thing is declared once, as a typed, frozen model: its type, its bounds, and under each field what it means. A part
of a study that a stage depends on is a field of the stage's spec as it stands. Everything else follows from the
declaration: the check of a study's files, the text of jobs and keys (`Section.to_spec`), `dualread schema`, and
docs/settings.md. There is one module per phase of the pipeline.
"""
