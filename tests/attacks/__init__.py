"""Odd replies, as data, and what each of them must be read as."""
