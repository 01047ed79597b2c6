"""Audited mistakes of judges: remembered, recalled, and shown to the next judgment."""
