"""Calls in flight as jobs of a provider's batch API."""
