"""What a judge takes, in every shape people have it: texts, messages, labels, files."""
