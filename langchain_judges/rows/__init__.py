"""Inputs of a judge in every form: texts, records, labels, files."""
