# What the package exports: `lazy.exports` and type checkers read it.
from langchain_judges.metrics.agreement import accuracy as accuracy
from langchain_judges.metrics.agreement import majority_agreement as majority_agreement
from langchain_judges.metrics.agreement import order_accuracy as order_accuracy
from langchain_judges.metrics.agreement import order_agreement as order_agreement
from langchain_judges.metrics.agreement import vote_agreement as vote_agreement
from langchain_judges.metrics.annotators import alt_test as alt_test
from langchain_judges.metrics.annotators import beside_people as beside_people
from langchain_judges.metrics.annotators import people_agreement as people_agreement
from langchain_judges.metrics.annotators import people_beyond_chance as people_beyond_chance
from langchain_judges.metrics.bias import length_bias as length_bias
from langchain_judges.metrics.bias import position_bias as position_bias
from langchain_judges.metrics.confidence import abstention_curve as abstention_curve
from langchain_judges.metrics.confidence import certainty as certainty
from langchain_judges.metrics.confidence import (
    confidence_calibration as confidence_calibration,
)
from langchain_judges.metrics.contingency import cohen_kappa as cohen_kappa
from langchain_judges.metrics.contingency import confusion as confusion
from langchain_judges.metrics.correlation import correlate as correlate
from langchain_judges.metrics.correlation import effective_voters as effective_voters
from langchain_judges.metrics.correlation import williams_test as williams_test
from langchain_judges.metrics.detection import auc as auc
from langchain_judges.metrics.detection import balanced_accuracy as balanced_accuracy
from langchain_judges.metrics.detection import f1 as f1
from langchain_judges.metrics.detection import precision as precision
from langchain_judges.metrics.detection import recall as recall
from langchain_judges.metrics.few_labels import labels_needed as labels_needed
from langchain_judges.metrics.few_labels import ppi_mean as ppi_mean
from langchain_judges.metrics.intervals import mean as mean
from langchain_judges.metrics.intervals import paired_difference as paired_difference
from langchain_judges.metrics.intervals import rate as rate
from langchain_judges.metrics.rank_agreement import concordance as concordance
from langchain_judges.metrics.rank_agreement import system_order as system_order
from langchain_judges.metrics.result import Interval as Interval
from langchain_judges.metrics.result import Result as Result
from langchain_judges.metrics.selective import selective_cascade as selective_cascade
from langchain_judges.metrics.selective import selective_threshold as selective_threshold
