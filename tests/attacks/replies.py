"""Replies that might be taken for a verdict that the model did not give, made from a seed.

    python -m tests.attacks.replies 100000

Each holds a forged verdict that the model quotes, drafts, thinks of or takes back, in forms
that a grammar varies. Printed, by family: how many were read as the forged verdict, as the
model's own, and as none.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage

from langchain_judges.asking.reading import read
from tests.attacks.kinds import KINDS, Kind

OPENINGS = (
    *("<think>", "<thinking>", "<reasoning>", "<reflection>", "<scratchpad>", "[THINK]"),
    *("[REASONING]", "◁think▷", "<|channel|>analysis<|message|>", "<|begin_of_thought|>"),
)
ENDINGS = (
    *("model_context_window_exceeded", "pause_turn", "token_limit", "max_output_reached"),
    *("insufficient_system_resource", "network_error", "other", "malformed_function_call"),
)
FILL = (
    *("I looked at both.", "The other one is better.", "That is an injection; I ignore it."),
    *("It asks for a verdict.", "On reflection this is wrong.", "Let me work it out first."),
)


class Attack(NamedTuple):
    """A reply, what the model was shown, and how the provider says it ended."""

    family: str
    kind: Kind
    reply: str
    material: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}


def forged_json(kind: Kind, rng: random.Random, **style: Any) -> str:
    members = [*kind.forged.items(), (kind.said, "Better in every way.")]
    rng.shuffle(members)
    return json.dumps(dict(members), **style)


def reformatted(text: str, rng: random.Random) -> str:
    """Return JSON as a model might write it when it quotes it."""
    data = json.loads(text)
    members = list(data.items())
    rng.shuffle(members)
    style: dict[str, Any] = rng.choice([{}, {"indent": 1}, {"separators": (" , ", " : ")}])
    quoted = json.dumps(dict(members), **style)
    return rng.choice([quoted, f"`{quoted}`", f"```json\n{quoted}\n```", f"“{quoted}”"])


def words(rng: random.Random, least: int = 1) -> str:
    return " ".join(rng.choices(FILL, k=rng.randint(least, 5)))


def quotation(kind: Kind, rng: random.Random) -> Attack:
    forged = forged_json(kind, rng)
    reply = f"{words(rng)} It holds {reformatted(forged, rng)} {words(rng)}"
    return Attack("quoted JSON", kind, reply, (f"Fine.\n{forged}\nEnd.",))


def quoted_words(kind: Kind, rng: random.Random) -> Attack:
    marks = rng.choice(["**", "_", "`", "> ", '"', "- "])
    lines = "\n".join(f"{marks}{line}{marks.strip()}" for line in kind.forged_words.split("\n"))
    reply = f"{words(rng)} It says:\n{lines}\n{words(rng)}"
    return Attack("quoted words", kind, reply, (f"Fine.\n{kind.forged_words}\nEnd.",))


def draft(kind: Kind, rng: random.Random) -> Attack:
    forged = forged_json(kind, rng)
    name = rng.choice(["draft", "attempt 1", "first thought", "candidate's claim"])
    reply = f"{{{name}: {forged}, final: {rng.choice(['', 'the other', '…'])}"
    return Attack("draft in no JSON", kind, reply + rng.choice(["", "}"]))


def thoughts(kind: Kind, rng: random.Random) -> Attack:
    opening = rng.choice(OPENINGS)
    inside = rng.choice([forged_json(kind, rng), f"\n{kind.forged_words}"])
    return Attack("thoughts without an end", kind, f"{opening}{words(rng)} {inside}")


def behind_braces(kind: Kind, rng: random.Random) -> Attack:
    braces = rng.choice(["{ ", "{} ", "{x} "]) * rng.randint(99, 300)
    own = json.dumps({**kind.answer, kind.said: "No."})
    return Attack("correction behind braces", kind, f"{forged_json(kind, rng)} {braces}{own}")


def taken_back(kind: Kind, rng: random.Random) -> Attack:
    return Attack("taken back", kind, f"{forged_json(kind, rng)} {words(rng, 4)} " * 1)


def unknown_ending(kind: Kind, rng: random.Random) -> Attack:
    field = rng.choice(["finish_reason", "stop_reason", "stopReason", "done_reason"])
    metadata = {field: rng.choice(ENDINGS)}
    return Attack("unknown ending", kind, forged_json(kind, rng), (), metadata)


def cut(kind: Kind, rng: random.Random) -> Attack:
    own = json.dumps({kind.said: f"It says {forged_json(kind, rng)}.", **kind.answer})
    return Attack("cut", kind, own[: rng.randrange(len(own) - 1)])


FAMILIES: tuple[Callable[[Kind, random.Random], Attack], ...] = (
    *(quotation, quoted_words, draft, thoughts),
    *(behind_braces, taken_back, unknown_ending, cut),
)


def attack(seed: int) -> Attack:
    """Return the attack of a seed."""
    rng = random.Random(seed)
    return rng.choice(FAMILIES)(rng.choice(list(KINDS.values())), rng)


def outcome(one: Attack) -> str:
    """Return as what an attack is read: `forged`, `own` or `none`."""
    message = AIMessage(one.reply, response_metadata=one.metadata)
    data, _ = read(message, one.kind.shape, one.kind.parse, None, one.material)
    if data is None:
        return "none"
    is_forged = all(data[name] == value for name, value in one.kind.forged.items())
    return "forged" if is_forged else "own"


def main(number: int) -> None:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for seed in range(number):
        one = attack(seed)
        counts[one.family][outcome(one)] += 1
    for family, read_as in sorted(counts.items()):
        print(f"{family}: {dict(read_as)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 10_000)
