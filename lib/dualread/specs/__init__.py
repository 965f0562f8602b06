"""What a stage is told: the type of every stage's `spec`, all that its result depends on besides its inputs.

There is one module per phase of the pipeline, because the code that a result depends on includes its spec's type: an
edit here recomputes what the edited module is for, and what is made from it. Rules build specs, `wire` writes them
into jobs, and the store's runner reads them back only when something has to be computed. Snakemake imports these
modules when it starts, so they import nothing but the standard library.
"""
