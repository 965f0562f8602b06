"""Natural-response replay (paper, 3.1): one teacher-forced pass over the generated ids, read at given positions."""
