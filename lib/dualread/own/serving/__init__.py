"""Answer requests while they arrive, with the confidence of each answer: what is behind `dualread serve`.

`asked` says what a request asks, and why readers have no confidence in its answer if they were not fitted for it. An
actor (`actor`) answers many requests at once: `on_transformers` with the engine of `dualread score`, `on_vllm` with
vLLM in a process of its own (`vllm_process`), whose answering pass gives the readers' states, too. `service` is the
thread between requests and actor.
"""
