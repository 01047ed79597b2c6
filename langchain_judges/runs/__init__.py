"""Many rows: bounded, resumable, within a budget; and methods compared on them.

The way of a row: `many` asks `run_state` for the next one, which `rows` reads and keys. A row
that `run_files` holds already is returned from there. Another is started where `budget` has
room, judged, and made a result; `run_files` stores it and `summary` counts it. Results return
in the order of the rows.
"""
