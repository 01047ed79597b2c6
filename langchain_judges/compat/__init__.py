"""Other packages' evaluators under their own names, each run by a judge of this package.

`compat.openevals`, `compat.agentevals` and `compat.langchain` are imported by name. Signatures,
keys, scales and polarity are those of the other package; a row that cannot be judged raises
`NotJudgedError` instead of returning a score.
"""
