"""The share of a judgment's input that a caching provider serves, by method.

The provider serves what begins as a prompt it has answered, from 4,096 characters on (1,024
tokens); nothing leaves this process. Run with `python -m benchmarks.prompt_caches`.
"""

from __future__ import annotations

from tests.test_prompt_cache import LONG_CASES, share_of_examples, share_of_method, share_of_rounds


def main() -> None:
    shares = {case: share_of_method(case) for case in LONG_CASES}
    for recall in ("all", "uniform:12"):
        shares[f'`rubric`, 20 examples, `recall="{recall}"`'] = share_of_examples(recall)
    shares["`rubric`, rounds of look-ups after the first"] = share_of_rounds()
    print("| one judgment | input served from the cache |\n|---|---|")
    for case, share in shares.items():
        print(f"| {case} | {share:.0%} |")


if __name__ == "__main__":
    main()
