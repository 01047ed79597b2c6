# What the package exports: `lazy.exports` and type checkers read it.
from langchain_judges.report.answers import TrustPolicy as TrustPolicy
from langchain_judges.report.compared_runs import read_baseline as read_baseline
from langchain_judges.report.external_judges import trust_columns as trust_columns
from langchain_judges.report.external_judges import trust_evaluator as trust_evaluator
from langchain_judges.report.joined_rows import read_verdicts as read_verdicts
from langchain_judges.report.report import ComparisonReport as ComparisonReport
from langchain_judges.report.report import TrustReport as TrustReport
from langchain_judges.report.report import compare as compare
from langchain_judges.report.report import gates as gates
from langchain_judges.report.report import trust as trust
