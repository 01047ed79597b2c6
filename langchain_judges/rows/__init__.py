"""What a judge takes, in every shape people have it: texts, records, labels, files."""
