# What the package exports: `lazy.exports` and type checkers read it.
from langchain_judges.asking.limiter import MinuteLimiter as MinuteLimiter
from langchain_judges.runs.cascade_thresholds import calibrate_cascade as calibrate_cascade
from langchain_judges.runs.comparison import rank as rank
from langchain_judges.runs.many import assert_judged as assert_judged
from langchain_judges.runs.run_state import budget as budget
