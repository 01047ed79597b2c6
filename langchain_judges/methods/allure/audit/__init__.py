"""The audit of a judge: find its mistakes, have them audited, remember them, measure again."""
