"""Many rows: bounded, resumable, within a budget; and methods compared on them."""
