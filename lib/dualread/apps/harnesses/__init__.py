"""Our statistics in other people's harnesses: metrics of Inspect, aggregations of lm-eval, scorers of scikit-learn."""
