"""May I trust this judge? Statistics on verdicts and people's labels.

Pure functions of lists and arrays: no model, no files. Verdicts, rows of `judge_many` or bare
values are taken alike; None is a failed judgment and is counted, never guessed. A result is a
number (a `float`) that carries its interval, `n`, and what was left out, by reason.
"""

from __future__ import annotations

from langchain_judges.metrics.agreement import (
    accuracy,
    failure_rates,
    majority_agreement,
    order_accuracy,
    order_agreement,
    vote_agreement,
    win_rate,
)
from langchain_judges.metrics.bias import (
    length_bias,
    position_bias,
    self_enhancement,
    transitivity,
)
from langchain_judges.metrics.confidence import (
    abstention_curve,
    certainty,
    confidence_calibration,
)
from langchain_judges.metrics.correlation import (
    correlate,
    williams_test,
)
from langchain_judges.metrics.detection import (
    auc,
    balanced_accuracy,
    f1,
    precision,
    recall,
)
from langchain_judges.metrics.intervals import (
    mean,
    paired_difference,
    rate,
)
from langchain_judges.metrics.labels import (
    label_next,
    labels_needed,
    ppi_mean,
    stratified_ppi_mean,
)
from langchain_judges.metrics.ordering import (
    concordance,
    system_order,
)
from langchain_judges.metrics.people import (
    alt_test,
    beside_people,
    oracle_agreement,
    people_agreement,
)
from langchain_judges.metrics.result import (
    Interval,
    Result,
)
from langchain_judges.metrics.selective import selective_cascade, selective_threshold
from langchain_judges.metrics.slopes import length_slope
from langchain_judges.metrics.tables import (
    cohen_kappa,
    confusion,
)
from langchain_judges.metrics.voters import (
    dawid_skene,
    effective_voters,
    learned_weights,
)

__all__ = [
    "Interval",
    "Result",
    "abstention_curve",
    "accuracy",
    "alt_test",
    "auc",
    "balanced_accuracy",
    "beside_people",
    "certainty",
    "cohen_kappa",
    "concordance",
    "confidence_calibration",
    "confusion",
    "correlate",
    "dawid_skene",
    "effective_voters",
    "f1",
    "failure_rates",
    "label_next",
    "labels_needed",
    "learned_weights",
    "length_bias",
    "length_slope",
    "majority_agreement",
    "mean",
    "oracle_agreement",
    "order_accuracy",
    "order_agreement",
    "paired_difference",
    "people_agreement",
    "position_bias",
    "ppi_mean",
    "precision",
    "rate",
    "recall",
    "selective_cascade",
    "selective_threshold",
    "self_enhancement",
    "stratified_ppi_mean",
    "system_order",
    "transitivity",
    "vote_agreement",
    "williams_test",
    "win_rate",
]
