"""Cases that the judge got right, audited and remembered beside its mistakes.

A memory of mistakes alone shows a judge only labels that were to be turned round.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from langchain_judges.methods.allure.audit.review import AuditDecision, AuditProposal


def right_beside(mistakes: int, share: float) -> int:
    """Return the most right cases beside some mistakes that are no larger share of all."""
    # Three mistakes at a share of a tenth are .33 right cases; nine are one, not .9999.
    return int(mistakes * share / (1 - share) + 1e-9)


def drawn_beside(
    mistakes: Sequence[AuditProposal],
    candidates: Sequence[AuditProposal],
    share: float,
    seed: int,
) -> list[AuditProposal]:
    """Return undoubted labels to audit beside doubted ones.

    Those of a family and label that the judge is doubted on come first: beside "a judge said 1,
    right is 0" they show where 1 is right. The rest is chance.
    """
    kinds = {(each["item"].get("family"), each["label"]) for each in mistakes}
    families = {family for family, _ in kinds}

    def rank(candidate: AuditProposal) -> tuple[bool, bool, bytes]:
        family = candidate["item"].get("family")
        lot = hashlib.sha256(f"{seed}|{candidate['id']}".encode()).digest()
        return (family, candidate["label"]) not in kinds, family not in families, lot

    return sorted(candidates, key=rank)[: right_beside(len(mistakes), share)]


def learnt_from(
    decisions: Mapping[str, AuditDecision], share: float
) -> tuple[list[str], list[str]]:
    """Return the ids of audited mistakes, and of right cases that are learnt with them.

    Labels that the auditor upheld against the check come first: no others are as near to a
    mistake, and they cost no decision more.
    """
    lessons = {id: each for id, each in decisions.items() if each["answer"] != "reject"}
    mistakes = [id for id, each in lessons.items() if each["label"] != each["wrong"]]
    false_alarms = [id for id, each in lessons.items() if each["answer"] == "check_wrong"]
    sample = [id for id in lessons if id not in {*mistakes, *false_alarms}]
    return mistakes, [*false_alarms, *sample][: right_beside(len(mistakes), share)]
