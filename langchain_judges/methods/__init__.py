"""One folder a method, and what all methods share."""
