"""One changed line of the library at a time, and the tests that notice it.

What one line breaks is best noticed by two tests in two files: by one alone, it is one deleted test away from being
noticed by none. `test_mutants.py` changes the lines, in a copy. When a line here is edited in the library, edit it here
too.
"""

from typing import NamedTuple


class Mutant(NamedTuple):
    """One changed line.

    Attributes:
        what: What is wrong then.
        file: The file below lib/dualread.
        before: The line, without white space at its ends; or a part of it that occurs once in the file.
        after: What takes its place.
        noticed_by: Tests below tests/ that fail, each of them: files, or single tests of files that take long.
    """

    what: str
    file: str
    before: str
    after: str
    noticed_by: tuple[str, ...]


MUTANTS = (
    # --- trust
    Mutant(
        "a parent in a reader's file may name any module",
        "readers/artifact.py",
        'check_plugin("readers", module, plugins, f"{path}: {place}module")',
        'check_plugin("readers", module if not prefix else "psr", plugins, f"{path}: {place}module")',
        ("security/test_named_modules.py", "readers/test_artifact.py"),
    ),
    Mutant(
        "a package whose name begins like one that was named may be named",
        "limits.py",
        "if not plugins.is_foreign(name) or name in ours or {name, package} & set(packages):",
        "if not plugins.is_foreign(name) or name in ours or any(package.startswith(one) for one in packages):",
        ("security/test_named_modules.py", "readers/test_artifact.py"),
    ),
    Mutant(
        "an answer without a confidence is undecided",
        "evaluation/thresholds.py",
        "return Decision(keep=False, threshold=value, target_risk_percent=target, reason=reason)",
        "return Decision(keep=None, threshold=value, target_risk_percent=target, reason=reason)",
        ("apps/score/test_no_confidence.py", "evaluation/test_thresholds.py"),
    ),
    Mutant(
        "an answer of punctuation counts as one",
        "grading/answers.py",
        'return None if canonical_answer else "the answer is nothing but punctuation"',
        "return None",
        ("apps/score/test_no_confidence.py", "grading/test_parse.py"),
    ),
    Mutant(
        "the first end of thinking counts",
        "grading/parse.py",
        "return text.rpartition(thinking_ends)[2] if thinking_ends in text else None",
        "return text.partition(thinking_ends)[2] if thinking_ends in text else None",
        ("grading/test_parse.py", "models/replay/test_positions.py"),
    ),
    Mutant(
        "another conversation than that of the reader's prompt is judged",
        "apps/serve/chat_questions.py",
        "!= list(request.before)",
        "== list(request.before)",
        ("apps/serve/test_client.py",),
    ),
    Mutant(
        "trainings ask the last turn alone",
        "training/_reference.py",
        'tuple((turn["role"], turn["content"][0]["text"]) for turn in before)',
        "()",
        ("training/test_grpo.py",),
    ),
    # --- models
    Mutant(
        "a turn that a chat template leaves out is not noticed",
        "models/backbones/encode.py",
        "if words.strip() not in rendered",
        "if not words.strip()",
        ("models/test_turns.py",),
    ),
    Mutant(
        "the state at the end of thinking is that after it",
        "models/replay/forward.py",
        "final[1 + at.think]",
        "final[min(2 + at.think, len(final) - 1)]",
        ("models/test_turns.py", "models/replay/test_example.py"),
    ),
    Mutant(
        "the answer block ends one token late",
        "models/replay/positions.py",
        "return next(t for t, (_, right) in enumerate(spans) if right >= end)",
        "return next(t for t, (left, _) in enumerate(spans) if left + 1 >= end)",
        ("models/replay/test_positions.py", "models/replay/test_example.py"),
    ),
    Mutant(
        "without a block, the stop token does not count",
        "models/replay/positions.py",
        "return Positions(close=n - 1,",
        "return Positions(close=last,",
        ("models/replay/test_positions.py", "models/replay/test_example.py"),
    ),
    Mutant(
        "a token that touches the answer is of the answer",
        "grading/answers.py",
        "return tuple(t for t, (first, last) in enumerate(spans) if max(first, start) < min(last, end))",
        "return tuple(t for t, (first, last) in enumerate(spans) if max(first, start) <= min(last, end))",
        ("grading/test_spans.py", "models/replay/test_positions.py"),
    ),
    Mutant(
        "a claim's first state is the prompt's",
        "models/replay/forward.py",
        '"h_pre": final[at.first],',
        '"h_pre": final[0],',
        ("models/replay/test_claims.py", "study/test_claims.py"),
    ),
    Mutant(
        "a claim is scored where it has no label on the source's image",
        "stages/_claims.py",
        "if original is not None:",
        "if original is None:",
        ("study/test_claims.py",),
    ),
    Mutant(
        "kappa multiplies",
        "models/replay/forward.py",
        "return torch.softmax(cosine / kappa, dim=0) @ image_states",
        "return torch.softmax(cosine * kappa, dim=0) @ image_states",
        ("models/replay/test_pooling.py", "models/replay/test_example.py"),
    ),
    Mutant(
        "answers are pooled in bfloat16",
        "models/replay/forward.py",
        "return states.float().mean(dim=0)",
        "return states.mean(dim=0)",
        ("models/replay/test_pooling.py", "models/replay/test_forward.py"),
    ),
    Mutant(
        "the answer's states are read one token early",
        "models/replay/forward.py",
        "h_ans = answer_state(final[[1 + t for t in at.answer]])",
        "h_ans = answer_state(final[list(at.answer)])",
        ("models/replay/test_forward.py", "models/replay/test_example.py"),
    ),
    Mutant(
        "the middle layer is read at a stop token",
        "models/replay/forward.py",
        '"h_mid": middle[at.last]',
        '"h_mid": middle[-1]',
        ("models/replay/test_forward.py", "models/replay/test_example.py"),
    ),
    Mutant(
        "padding behind a completion is attended to",
        "models/backbones/encode.py",
        "mask[i, start:end] = 1",
        "mask[i, start:] = 1",
        # Of models, only those that read both ways let a padded token change another one's state.
        (
            "models/backbones/test_encode.py::test_a_batch_by_hand",
            "models/test_families.py::test_the_entropies_of_vauq_are_the_models_own_and_rest_on_the_image",
        ),
    ),
    Mutant(
        "top_p leaves out the token that reaches it",
        "models/generation/_transformers_stream.py",
        "outside = ordered.cumsum(dim=-1) - ordered >= decoding.top_p",
        "outside = ordered.cumsum(dim=-1) >= decoding.top_p",
        (
            "models/generation/test_transformers_engine.py::test_ids_are_drawn_by_their_probabilities",
            "training/test_rollouts.py::test_against_a_literal_loop",
        ),
    ),
    Mutant(
        "the incomplete last step of a pass is left out",
        "training/settings.py",
        "math.ceil((self.passes or 0) * math.ceil(n_rows / self.prompts_per_step))",
        "math.ceil((self.passes or 0) * (n_rows // self.prompts_per_step))",
        ("training/test_order.py::test_steps", "reporting/tables/test_hparams.py"),
    ),
    Mutant(
        "a step without a gradient counts as one that moved something",
        "training/trainer.py",
        "norm == 0 or rate == 0",
        "norm == 0 and rate == 0",
        (
            "training/test_grpo.py::test_groups_and_steps_are_counted_by_hand",
            "stages/test_train_actor.py::test_seconds_are_recorded_and_not_published_and_steps_are_beside_the_log_of_the_job",
        ),
    ),
    Mutant(
        "the evidence of tokens is not weighed for a fault of this size",
        "training/_evidence.py",
        "1 / 16, ",
        "16, ",
        ("training/test_evidence.py::test_the_evidence_of_a_token_by_hand",),
    ),
    Mutant(
        "a phantom VQA-RAD without a train split has a row of train",
        "training/writers/vqa_rad.py",
        'any(row["phrase_type"] == "freeform"',
        'any(row["phrase_type"] != "freeform"',
        ("training/writers/test_planted.py::test_of_vqa_rad_a_question_and_not_an_image_belongs_to_a_split",),
    ),
    # --- readers
    Mutant(
        "of epochs with one stop loss, the last is restored",
        "readers/_network.py",
        "if watched < best_loss:",
        "if watched <= best_loss:",
        ("readers/test_network.py", "readers/test_saplma.py"),
    ),
    Mutant(
        "early stopping waits an epoch longer",
        "readers/_network.py",
        "if epoch - best_epoch >= settings.patience:",
        "if epoch - best_epoch > settings.patience:",
        ("readers/test_network.py", "readers/test_psr.py"),
    ),
    Mutant(
        "the temperature is fitted on the answers that chose the epoch",
        "readers/_network.py",
        "temperature_notes(probe_log_odds(tensors, calibration.answers.features(feature)), calibration)",
        "temperature_notes(probe_log_odds(tensors, stop.answers.features(feature)), stop)",
        (
            "readers/test_psr.py::test_the_temperature_is_that_of_the_calibration_partition_alone",
            "readers/test_saplma.py",
        ),
    ),
    # --- data
    Mutant(
        "a donor may show the same pixels",
        "data/candidates.py",
        "frozenset((cluster, *(numbers_of[pixel] for pixel in of_row), *forms))",
        "frozenset((cluster, *forms))",
        ("data/test_donors.py", "stages/test_pair_donors.py"),
    ),
    Mutant(
        "only the first of several pictures keeps a donor away",
        "data/candidates.py",
        "frozenset((cluster, *(numbers_of[pixel] for pixel in of_row), *forms))",
        "frozenset((cluster, *(numbers_of[pixel] for pixel in of_row[:1]), *forms))",
        ("data/test_donors.py",),
    ),
    Mutant(
        "a donor may show another number of images",
        "data/candidates.py",
        'same = [*dict.fromkeys([*SAME, *match_on]), "images"]',
        "same = [*dict.fromkeys([*SAME, *match_on])]",
        ("data/test_donors.py",),
    ),
    Mutant(
        "images that are shown together are several clusters",
        "data/questions/roles.py",
        "first = connected([*images, *patient] for images, patient in zip(shown, known, strict=True))",
        "first = connected([*images[:1], *patient] for images, patient in zip(shown, known, strict=True))",
        ("data/questions/test_clusters.py",),
    ),
    Mutant(
        "shuffled images may be of the same patient",
        "models/images/shuffled.py",
        'of_others = (other for other in following if other["cluster_id"] != image["cluster_id"])',
        'of_others = (other for other in following if other["image_id"] != image["image_id"])',
        ("models/test_conditions.py",),
    ),
    Mutant(
        "a change of one role changes all images",
        "models/images/base.py",
        "for change in changes if change[2:] in ((), (role,)))",
        "for change in changes)",
        ("models/test_conditions.py",),
    ),
    Mutant(
        "a reader of two images takes any number",
        "schema/recorded.py",
        "return n_images > 0 and (not self._images or n_images in map(len, self._images))",
        "return n_images > 0",
        ("schema/test_recorded.py",),
    ),
    Mutant(
        "gray levels are rounded down",
        "data/gray.py",
        "* 510 + top) // (2 * top)",
        "* 510) // (2 * top)",
        ("data/test_gray.py", "data/test_images.py"),
    ),
    # --- grading
    Mutant(
        "two answer blocks are one",
        "grading/parse.py",
        "if text.count(opening) != 1 or text.count(closing) != 1:",
        "if text.count(opening) < 1 or text.count(closing) < 1:",
        ("grading/test_parse.py", "data/logs/test_logs.py"),
    ),
    Mutant(
        "an answer of punctuation alone equals an empty reference",
        "grading/canonical.py",
        'return form != "" and any(form == canonical(reference) for reference in references)',
        "return any(form == canonical(reference) for reference in references)",
        ("grading/test_canonical.py", "grading/test_any_text.py"),
    ),
    Mutant(
        "a stated 9 of 10 is 9 percent",
        "apps/evaluate/log.py",
        "(max(plain) <= 10 or min(plain) < 1)",
        "(max(plain) < 10 or min(plain) < 1)",
        ("data/logs/test_logs.py",),
    ),
    Mutant(
        "a majority vote judges the first draw of a log",
        "data/logs/lm_eval.py",
        "value if is_of_first else None for name",
        "value for name",
        ("data/logs/test_logs.py",),
    ),
    Mutant(
        "a log's draws count with the first one",
        "apps/evaluate/log.py",
        "drawn[1:].count(drawn[0])",
        "drawn.count(drawn[0])",
        ("data/logs/test_logs.py",),
    ),
    Mutant(
        "a key in base64 is written where a service sends it back",
        "apps/ask/sending.py",
        "forms |= {inside, inside.translate",
        "forms |= {inside.translate",
        ("security/test_service_replies.py",),
    ),
    # --- evaluation
    Mutant(
        "a tie counts 1 in AUROC",
        "evaluation/metrics/discrimination.py",
        'below, through = np.searchsorted(wrong, right, side="left"), np.searchsorted(wrong, right, side="right")',
        'below, through = np.searchsorted(wrong, right, side="right"), np.searchsorted(wrong, right, side="right")',
        ("evaluation/metrics/test_discrimination.py", "evaluation/metrics/test_any_confidences.py"),
    ),
    Mutant(
        "Bonferroni in place of Holm",
        "evaluation/statistics/p_values.py",
        "scaled = min(1.0, (len(order) - rank) * value)",
        "scaled = min(1.0, len(order) * value)",
        ("evaluation/statistics/test_p_values.py", "evaluation/test_contrasts.py"),
    ),
    Mutant(
        "a confidence at the edge of two bins is in the lower one",
        "evaluation/metrics/calibration_error.py",
        'np.searchsorted(inner_edges, checked_confidence(confidence), side="right")',
        'np.searchsorted(inner_edges, checked_confidence(confidence), side="left")',
        ("evaluation/metrics/test_calibration_error.py", "reporting/figures/test_reliability.py"),
    ),
    Mutant(
        "the threshold is the largest that reaches the risk",
        "evaluation/metrics/selective.py",
        "return float(-levels[reached[-1]])",
        "return float(-levels[reached[0]])",
        ("evaluation/metrics/test_selective.py", "evaluation/test_thresholds.py"),
    ),
    Mutant(
        "what seeds and images have together counts twice",
        "evaluation/statistics/jackknife.py",
        "shared = max(of_images.value - seed_by_image, 0.0)",
        "shared = of_images.value",
        ("evaluation/statistics/test_jackknife.py", "evaluation/test_contrasts.py"),
    ),
    Mutant(
        "the jackknife's variance lacks (G - 1) / G",
        "evaluation/statistics/jackknife.py",
        "float(np.sum(defined**2)) * (len(defined) - 1) / len(defined) if",
        "float(np.sum(defined**2)) if",
        ("evaluation/statistics/test_jackknife.py", "evaluation/test_pair_metrics.py"),
    ),
    Mutant(
        "two studies draw the same images",
        "evaluation/statistics/bootstrap.py",
        'generator(*draws.names, "bootstrap")',
        'generator(*draws.names[1:], "bootstrap")',
        ("evaluation/statistics/test_bootstrap.py", "evaluation/test_contrasts.py"),
    ),
    Mutant(
        "what the process has read before changes a bit",
        "evaluation/statistics/clusters.py",
        "held = self.rows > 0  #",
        "held = self.rows >= 0  #",
        ("evaluation/statistics/test_proportion.py", "evaluation/test_columns.py"),
    ),
    Mutant(
        "a loss that five images carry spreads as a share",
        "evaluation/statistics/t_replicates.py",
        "if images.n_rarer < _FEWEST_IMAGES and",
        "if images.n_rarer <= _FEWEST_IMAGES and",
        ("evaluation/statistics/test_t_replicates.py",),
    ),
    Mutant(
        "a hundred images are uneven from fifty on",
        "evaluation/statistics/clusters.py",
        "_EVEN_SHARE, _MANY = 0.75, 100.0",
        "_EVEN_SHARE, _MANY = 0.75, 50.0",
        ("evaluation/statistics/test_clusters.py",),
    ),
    Mutant(
        "a forced answer that is none passes for any",
        "evaluation/join.py",
        'other = fixed["canonical_answer"].ne_missing(pairs["canonical_answer_real"])',
        'other = fixed["canonical_answer"].ne(pairs["canonical_answer_real"])',
        ("evaluation/test_join.py",),
    ),
    Mutant(
        "an answer on the threshold is not kept",
        "evaluation/thresholds.py",
        "keep = confidence >= value",
        "keep = confidence > value",
        ("evaluation/test_thresholds.py",),
    ),
    # --- tables of other people
    Mutant(
        "a probability of 1 is none",
        "data/tables/contract.py",
        "lambda text: pl.when(_number(text).is_between(0, 1)).then(_number(text)),",
        'lambda text: pl.when(_number(text).is_between(0, 1, closed="left")).then(_number(text)),',
        ("data/tables/test_contract.py", "apps/evaluate/test_tables.py"),
    ),
    Mutant(
        "rows that nobody judged count",
        "data/tables/checks.py",
        "unscored = texts.is_null() | texts.is_in(list(words))",
        "unscored = texts.is_in(list(words))",
        ("data/tables/test_contract.py", "apps/evaluate/test_messages.py"),
    ),
    Mutant(
        "a donor is the question's own image",
        "apps/evaluate/evaluation_data.py",
        "if cluster == IMAGE and len(same):",
        "if cluster != IMAGE and len(same):",
        ("apps/evaluate/test_evaluation_data.py", "apps/evaluate/test_messages.py"),
    ),
    # --- own
    Mutant(
        "an answer is judged that was drawn at a higher temperature than those that readers know",
        "apps/serve/chat_questions.py",
        "if temperature != fitted.temperature or (temperature > 0 and top_p != fitted.top_p):",
        "if temperature < fitted.temperature or (temperature > 0 and top_p != fitted.top_p):",
        (
            "apps/serve/service/test_service.py",
            "apps/serve/test_client.py::test_what_the_reader_was_not_fitted_for_is_answered_without_a_confidence",
        ),
    ),
    Mutant(
        "an id of a client ends a line of a record",
        "apps/serve/outcome.py",
        'line = (json.dumps(row) + "\\n").encode()',
        'line = (json.dumps(row, ensure_ascii=False) + "\\n").encode(errors="replace")',
        ("apps/serve/service/test_record.py",),
    ),
    Mutant(
        "pixels count per image, not per request",
        "apps/serve/wire.py",
        "n_decoded += decoded.image.width * decoded.image.height",
        "n_decoded = decoded.image.width * decoded.image.height",
        ("apps/serve/test_wire.py",),
    ),
    Mutant(
        "a token that begins where a text of stop cuts off is said to be in the text",
        "apps/serve/texts.py",
        "for start, event in waiting if ends or start < len(text)]",
        "for start, event in waiting if ends or start <= len(text)]",
        (
            "apps/serve/service/test_texts.py",
            "apps/serve/test_client.py::test_a_text_of_stop_cuts_off_the_answer_whole_and_streamed",
        ),
    ),
    Mutant(
        "vLLM's process imports modules of the working directory",
        "apps/serve/actors.py",
        '[sys.executable, "-P", "-m", vllm_process.__name__, str(end)]',
        '[sys.executable, "-m", vllm_process.__name__, str(end)]',
        ("apps/serve/service/test_vllm_process.py",),
    ),
    Mutant(
        "a key keeps out who opens the page",
        "apps/serve/application.py",
        'if request.url.path in ("/health", *public)',
        'if request.url.path in ("/health",)',
        ("apps/serve/test_page.py",),
    ),
    Mutant(
        "bodies that are being sent together are not bounded",
        "apps/serve/web.py",
        "if self._n_bytes > limits.BODIES * most:",
        "if len(body) > limits.BODIES * most:",
        ("apps/serve/test_hostile.py",),
    ),
    Mutant(
        "a page of another site asks the server by a name of its own",
        "apps/serve/web.py",
        'return name in {"localhost", *map(str.lower, names)}',
        'return "localhost" in name or name in {*map(str.lower, names)}',
        ("apps/test_web.py",),
    ),
    # --- reporting
    Mutant(
        "a dagger needs few images in every seed",
        "reporting/tables/values.py",
        'if any(self._estimates(key, f"{kind}_{flag}", seeds))]',
        'if all(self._estimates(key, f"{kind}_{flag}", seeds))]',
        ("reporting/tables/test_values.py", "reporting/tables/test_marks.py"),
    ),
    # --- study
    Mutant(
        "readers are fitted under controls, too",
        "study/shards.py",
        "(on_train and name == self.in_distribution and not self._is_control(condition))",
        "(on_train and name == self.in_distribution)",
        ("study/test_shards.py", "study/test_paper_study.py"),
    ),
    Mutant(
        "an artifact of fewer inputs is enough",
        "study/stale.py",
        "if entry.parts and now.inputs.items() <= made.action.inputs.items():",
        "if entry.parts and now.inputs.items() >= made.action.inputs.items():",
        ("study/test_stale.py", "study/test_again.py"),
    ),
    # --- store
    Mutant(
        "the version of Python leaves the key",
        "store/key.py",
        'FIELDS = ("stage", "code", "spec", "inputs", "packages", "python")',
        'FIELDS = ("stage", "code", "spec", "inputs", "packages")',
        ("store/test_manifest.py", "study/test_stale.py"),
    ),
    Mutant(
        "a process holds the lease of another one that had its number",
        "store/partial.py",
        'return is_alive(owner["pid"]) and owner["birth"] == birth(owner["pid"])',
        'return is_alive(owner["pid"])',
        ("store/test_partial.py", "store/test_gc.py"),
    ),
    Mutant(
        "a kept batch of another checkpoint is taken",
        "store/batches.py",
        "inputs = {name: digest for name, digest in self.action.inputs.items() if name not in self.by_row}",
        "inputs = {}",
        ("models/test_finished.py",),
    ),
    Mutant(
        "a kept batch of another picture is taken",
        "models/finished.py",
        "return [[*map(_content, field)] if isinstance(field, list | tuple) else field for field in fields]",
        "return [None if isinstance(field, list | tuple) else field for field in fields]",
        ("models/test_finished.py", "stages/test_one_image.py"),
    ),
    Mutant(
        "a damaged batch is read",
        "store/batches.py",
        'return file.name.split(".")[1:2] != [sha256_file(file)]',
        "return False",
        ("models/test_finished.py", "store/test_graph.py"),
    ),
    # --- declared
    Mutant(
        "a setting that is not known is ignored",
        "schema/base.py",
        'model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)',
        'model_config = ConfigDict(frozen=True, extra="ignore", strict=True, allow_inf_nan=False, defer_build=True)',
        ("study/test_config_settings.py", "study/test_config.py"),
    ),
    Mutant(
        "a reader may drop all units of a layer",
        "schema/base.py",
        "BelowOne = Annotated[float, Field(ge=0, lt=1)]",
        "BelowOne = Annotated[float, Field(ge=0, le=1)]",
        ("study/test_messages.py", "readers/test_bicr.py::test_some_units_are_kept"),
    ),
    Mutant(
        "the plan of a dry run is taken for that of a run",
        "study/workflow.py",
        'return f"{results}/{DRY_RUN}" if workflow.is_main_process and not makes_results(workflow) else results',
        "return results",
        ("study/test_run.py", "workflow/test_never_stale.py"),
    ),
    Mutant(
        "a class of a package that a study.json names is run",
        "study/files.py",
        "resolve(config, with_plugins=False)",
        "resolve(config)",
        ("study/test_files.py",),
    ),
    Mutant(
        "a missing artifact that would be the same is another configuration",
        "apps/explain/verify.py",
        "reasons(target.manifest, store, missing=False)",
        "reasons(target.manifest, store)",
        ("workflow/test_never_stale.py",),
    ),
    Mutant(
        "a kill leaves a folder of LaTeX behind",
        "stages/preview_tables.py",
        'TemporaryDirectory(prefix="scratch-", dir=out)',
        'TemporaryDirectory(prefix="scratch-")',
        ("stages/test_preview_tables.py",),
    ),
    Mutant(
        "intervals of groups hold one by one and not together",
        "evaluation/subgroups.py",
        "self._limits(row, ALPHA / len(rows))",
        "self._limits(row, ALPHA)",
        ("evaluation/test_subgroups.py",),
    ),
    Mutant(
        "the best group is the worst",
        "evaluation/subgroups.py",
        'extreme = min if _METRICS[name].better == "higher" else max',
        'extreme = max if _METRICS[name].better == "higher" else min',
        ("evaluation/test_subgroups.py",),
    ),
    Mutant(
        "certified thresholds of groups do not share delta",
        "apps/evaluate/subgroups.py",
        "share_delta=options.share_delta * len(groups)",
        "share_delta=options.share_delta",
        ("apps/evaluate/test_groups.py",),
    ),
    Mutant(
        "calibration images with more answers count more",
        "evaluation/answer_sets.py",
        "1.0 / ((len(sizes) + 1) * sizes[number[order]])",
        "np.full(len(p), 1.0 / (len(p) + 1))",
        ("evaluation/test_answer_sets.py",),
    ),
    Mutant(
        "reports of one patient count as independent",
        "evaluation/claim_filter.py",
        "n_reports = np.bincount(claims.cluster_of_reports())",
        "n_reports, claims = np.ones(claims.n_reports, dtype=int), claims._replace(cluster=claims.report)",
        ("evaluation/test_claim_filter.py",),
    ),
    Mutant(
        "a report that has lost a claim loses again",
        "evaluation/claim_filter.py",
        "change = LOSSES[loss](n_kept, n_wrong) - LOSSES[loss](n_kept - 1, n_wrong - wrong)",
        "change = wrong.astype(float)",
        ("evaluation/test_claim_filter.py",),
    ),
    Mutant(
        "a filter that keeps no claim is certified",
        "evaluation/claim_filter.py",
        "if smallest is not None and smallest <= levels[0]:",
        "if smallest is not None:",
        ("evaluation/test_claim_filter.py",),
    ),
    Mutant(
        "claims of one report count as independent",
        "apps/evaluate/evaluation_data.py",
        "names = (CLUSTER, IMAGE, REPORT) if answers.has(CLAIM) else (CLUSTER, IMAGE)",
        "names = (CLUSTER, IMAGE)",
        ("apps/evaluate/test_claims.py",),
    ),
    # --- meaning and labels
    Mutant(
        "one direction is enough for two answers to mean the same",
        "stages/group_answers.py",
        "least = 0.75 if groups.neutral else 1.0",
        "least = 0.75",
        ("stages/test_group_answers.py",),
    ),
    Mutant(
        "a sample is compared with the one before it",
        "readers/groups.py",
        "members = (first for first in groups if first is not None and text is not None)",
        "members = (first for first in groups[-1:] if first is not None and text is not None)",
        ("readers/test_groups.py",),
    ),
    Mutant(
        "a reader's calibration follows its target",
        "readers/labels.py",
        '_LEARNED = ("fit", "stop")',
        '_LEARNED = ("fit", "stop", "calibration")',
        ("readers/test_labels.py",),
    ),
    # --- further metrics and trainings
    Mutant(
        "a detached head trains the states",
        "training/state_signal.py",
        "states.detach() if self._settings.detach else states",
        "states",
        ("training/test_state_signal.py",),
    ),
    Mutant(
        "the head learns from the state before the answer is closed",
        "training/state_signal.py",
        "width + self._close[row]",
        "width + self._close[row] - 1",
        ("training/test_state_signal.py",),
    ),
    Mutant(
        "a training goes on without the moments of its head",
        "training/state_signal.py",
        'self.optimizer.load_state_dict(saved["optimizer"])',
        "pass",
        ("training/test_state_signal.py",),
    ),
    Mutant(
        "two answers that are missing count as changed",
        "evaluation/conditions.py",
        '.ne_missing(others["canonical_answer"])',
        '.ne(others["canonical_answer"]).fill_null(True)',
        ("evaluation/test_conditions.py",),
    ),
    Mutant(
        "an arm draws other rollouts than the actor that it names",
        "training/job.py",
        "settings.draws_as or spec.actor",
        "spec.actor",
        ("training/test_job.py",),
    ),
    Mutant(
        "exactly 95% of the correct rows are too few",
        "evaluation/metrics/discrimination.py",
        "20 * np.cumsum(right) > right.sum()",
        "20 * np.cumsum(right) >= right.sum()",
        ("evaluation/metrics/test_discrimination.py",),
    ),
    Mutant(
        "wrong answers with equal confidence are found one after the other",
        "evaluation/metrics/discrimination.py",
        "wrong * errors / (errors + np.cumsum(right))",
        "wrong * errors / (errors + np.cumsum(right) - right)",
        ("evaluation/metrics/test_discrimination.py",),
    ),
    Mutant(
        "a training takes new questions for each step on the same completions",
        "training/trainer.py",
        "rollouts = steps // settings.num_iterations",
        "rollouts = steps",
        ("training/test_loss.py",),
    ),
    Mutant(
        "completions are compared with a policy that has moved",
        "training/_grpo_trainer.py",
        "self.state.global_step % self.job.settings.num_iterations == 0",
        "self.state.global_step >= 0",
        ("training/test_sampled.py",),
    ),
    # --- reports
    Mutant(
        "a sentence about what the reference does not state is supported",
        "grading/claim_labels/attributes.py",
        "return any(stated.items() <= _stated_by(reference).items() for reference in references)",
        "return any(stated.items() <= (stated | _stated_by(reference)).items() for reference in references)",
        ("grading/claim_labels/test_attributes.py", "training/writers/test_planted.py"),
    ),
    Mutant(
        "views are in the order of the file",
        "data/datasets/_reports.py",
        'known.sort(key=lambda pair: pair[0] or "unknown")  # frontal, lateral, unknown',
        "pass",
        ("data/datasets/test_reports.py",),
    ),
)
