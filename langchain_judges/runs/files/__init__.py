"""What a run writes: results, replies to rows in progress, and parts of several machines."""
