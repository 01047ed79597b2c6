"""What a run writes: results, replies to rows in progress, and the parts of a table."""
