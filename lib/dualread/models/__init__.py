"""Vision-language models: prompting, pretraining, training, generation, and the replay that reads hidden states."""
