"""What the failure modes of the ALLURE paper mean (Hasanbeig et al. 2023, section 4).

A judge reads the meaning beside the name of the mode that misled it, for a bare name says
little to it. A mode says what misled, and not whether the response is right.
"""

from __future__ import annotations

MEANINGS = {
    "parroting": "The response repeats the task, instead of an answer or around one.",
    "gibberish": "The response or most of it is no meaningful text, or repeats itself without "
    "end.",
    "lengthy argument": "The response argues at length, so that its answer is hidden or never "
    "stated.",
    "partial correctness": "Only a part of the response agrees with the expected answer.",
    "keywords": "Words of the task or of the expected answer mislead: they stand around a "
    "right answer, or without being the answer.",
}
"""One sentence for each of the five, by name."""


def meaning_of(mode: object, own: str | None = None) -> str:
    """Return what a failure mode means: as its example says, else as the paper's five do.

    Args:
        mode: The name of the mode.
        own: The meaning that was remembered with an example.
    """
    return (own or MEANINGS.get(str(mode), "")).strip()
