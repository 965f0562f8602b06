"""Metrics as pure functions of numpy arrays: one file a family.

Every function takes `confidence` (float64 [n], the probability of being correct, in [0, 1]) and `correct` (bool [n]),
refuses NaN, values outside [0, 1] and arrays of different lengths with ValueError, and raises UndefinedMetricError
where the metric has no value. No function depends on the order of the rows.
"""
