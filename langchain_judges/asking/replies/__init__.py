"""What a model wrote: its JSON objects, its words, and how sure it was of them."""
