"""Models: how a backbone is prompted, trained, asked for answers, and replayed to read its hidden states."""
