"""The baselines of the papers: one prompt, chain of thought, self-consistency, plan & solve."""
