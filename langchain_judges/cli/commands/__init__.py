"""The commands, each in a file of its name: its own flags, its steps, what it prints."""
