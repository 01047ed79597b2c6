"""A cascade: a cheap judge first, the next only where it is unsure."""
