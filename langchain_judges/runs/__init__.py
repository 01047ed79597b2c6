"""Many rows: bounded, resumable, within a budget; and methods compared on them.

The way of a row: `many` asks `workload` for the next one, which `row_reader` reads and keys.
A row that `files` holds already is returned from there. Another is started where `in_flight`
and `budget` have room, judged, and made a result by `run_row`; `files` stores it and `summary`
counts it. `window` returns the results in the order of the rows.
"""
