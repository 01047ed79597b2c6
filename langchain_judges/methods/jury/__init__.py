"""A jury: several judges or models on the same row, and what most of them say."""
