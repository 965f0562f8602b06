"""Stages: the input/output edge of the library, one module a stage, each with `compute(spec, inputs, out)`."""
