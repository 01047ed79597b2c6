"""May I trust this judge? Statistics on verdicts and people's labels.

Pure functions of lists and arrays: no model, no files. Verdicts, rows of `judge_many` or bare
values are taken alike; None is a failed judgment and is counted, never guessed. A result is a
number (a `float`) that carries its interval, `n`, and what was left out, by reason.
"""

from __future__ import annotations

from langchain_judges.metrics.agreement import (
    accuracy,
    majority_agreement,
    majority_vote,
    order_accuracy,
    order_agreement,
    vote_agreement,
)
from langchain_judges.metrics.alttest import alt_test
from langchain_judges.metrics.areas import auc, delong_test, hard_label_auc
from langchain_judges.metrics.arena import style_controlled_strengths
from langchain_judges.metrics.bias import perturbation_bias, position_bias, self_enhancement
from langchain_judges.metrics.bootstrapping import bootstrap, paired_bootstrap
from langchain_judges.metrics.calibration import (
    abstention_curve,
    calibrated_scores,
    confidence_calibration,
    verdict_entropy,
)
from langchain_judges.metrics.comparisons import (
    benjamini_yekutieli,
    holm,
    mcnemar,
    sign_flip_test,
)
from langchain_judges.metrics.corrected_rates import corrected_rate, rogan_gladen
from langchain_judges.metrics.correlation import (
    correlate,
    kendall,
    pairwise_accuracy,
    pearson,
    spearman,
    williams_test,
)
from langchain_judges.metrics.detection import (
    balanced_accuracy,
    classification,
    f1,
    matthews,
    precision,
    recall,
)
from langchain_judges.metrics.doubt import certainty
from langchain_judges.metrics.equal_length import equal_length_win_rate
from langchain_judges.metrics.fewlabels import (
    neyman_allocation,
    post_stratified_mean,
    ppi_mean,
    ppi_plus_plus_mean,
    stratified_ppi_mean,
)
from langchain_judges.metrics.intervals import (
    clustered_standard_error,
    mean,
    paired_difference,
    rate,
    sample_noise,
    wilson_interval,
)
from langchain_judges.metrics.lesser import length_bias, lesser_bias, list_bias, markdown_bias
from langchain_judges.metrics.people import beside_people, oracle_agreement, people_agreement
from langchain_judges.metrics.power import label_next, labels_needed, power_of_lead
from langchain_judges.metrics.ranking import bradley_terry
from langchain_judges.metrics.raters import (
    cohen_kappa,
    confusion,
    fleiss_kappa,
    krippendorff_alpha,
)
from langchain_judges.metrics.rates import (
    failure_rates,
    first_slot_baseline,
    length_baseline,
    majority_baseline,
    tie_rate,
    win_rate,
)
from langchain_judges.metrics.result import Interval, Result, Significance
from langchain_judges.metrics.selective import (
    binomial_upper_bound,
    selective_cascade,
    selective_threshold,
)
from langchain_judges.metrics.signals import detect_signal, signal_detection
from langchain_judges.metrics.slopes import length_slope, preference_slopes, style_slopes
from langchain_judges.metrics.slots import calibrated_slots, slot_probabilities
from langchain_judges.metrics.studies import decision_aid, decision_aid_by_arm, plan_overlap
from langchain_judges.metrics.style import style_features
from langchain_judges.metrics.truth import dawid_skene, transitivity
from langchain_judges.metrics.voters import effective_voters, learned_weights

__all__ = [
    "Interval",
    "Result",
    "Significance",
    "abstention_curve",
    "accuracy",
    "alt_test",
    "auc",
    "balanced_accuracy",
    "benjamini_yekutieli",
    "beside_people",
    "binomial_upper_bound",
    "bootstrap",
    "bradley_terry",
    "calibrated_scores",
    "calibrated_slots",
    "certainty",
    "classification",
    "clustered_standard_error",
    "cohen_kappa",
    "confidence_calibration",
    "confusion",
    "corrected_rate",
    "correlate",
    "dawid_skene",
    "decision_aid",
    "decision_aid_by_arm",
    "delong_test",
    "detect_signal",
    "effective_voters",
    "equal_length_win_rate",
    "f1",
    "failure_rates",
    "first_slot_baseline",
    "fleiss_kappa",
    "hard_label_auc",
    "holm",
    "kendall",
    "krippendorff_alpha",
    "label_next",
    "labels_needed",
    "learned_weights",
    "length_baseline",
    "length_bias",
    "length_slope",
    "lesser_bias",
    "list_bias",
    "majority_agreement",
    "majority_baseline",
    "majority_vote",
    "markdown_bias",
    "matthews",
    "mcnemar",
    "mean",
    "neyman_allocation",
    "oracle_agreement",
    "order_accuracy",
    "order_agreement",
    "paired_bootstrap",
    "paired_difference",
    "pairwise_accuracy",
    "pearson",
    "people_agreement",
    "perturbation_bias",
    "plan_overlap",
    "position_bias",
    "post_stratified_mean",
    "power_of_lead",
    "ppi_mean",
    "ppi_plus_plus_mean",
    "precision",
    "preference_slopes",
    "rate",
    "recall",
    "rogan_gladen",
    "sample_noise",
    "selective_cascade",
    "selective_threshold",
    "self_enhancement",
    "sign_flip_test",
    "signal_detection",
    "slot_probabilities",
    "spearman",
    "stratified_ppi_mean",
    "style_controlled_strengths",
    "style_features",
    "style_slopes",
    "tie_rate",
    "transitivity",
    "verdict_entropy",
    "vote_agreement",
    "williams_test",
    "wilson_interval",
    "win_rate",
]
