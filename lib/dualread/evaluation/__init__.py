"""The only place where labels meet confidences: join them, compute every metric with its interval, compare methods."""
