"""What runs over many rows find out: which method, system or threshold to choose."""
