"""Asking a model: from a prompt to a checked reply. The only place where a model is called."""
