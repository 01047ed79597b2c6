"""The suites of openevals and agentevals, run with our evaluators in the place of theirs."""
