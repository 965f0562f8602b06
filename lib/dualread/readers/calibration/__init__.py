"""Maps from a raw score to a probability: log-odds arithmetic, temperature scaling, Platt scaling."""
