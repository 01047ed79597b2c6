"""Other packages' evaluators under their own names, each by a judge of this package.

`compat.openevals`, `compat.agentevals` and `compat.langchain` are imported by name. Signatures,
keys, scales and polarity are those of the other package; what could not be judged raises
`NotJudgedError` and has no score.
"""
