"""The papers' studies, with any models: `python -m cookbook.study PAPER --table N`."""
