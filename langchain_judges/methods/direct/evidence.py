"""What the baselines show beside their verdict."""

from __future__ import annotations

from langchain_judges.methods.options import EvidenceTable

ANSWERS = EvidenceTable(
    "ballots",
    "Answers",
    (
        ("order", "Order"),
        ("sample", "Sample"),
        ("preference", "Verdict"),
        ("explanation", "Explanation"),
    ),
)
