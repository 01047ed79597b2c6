"""Texts that use every given concept: how they are written, and how they are measured."""
