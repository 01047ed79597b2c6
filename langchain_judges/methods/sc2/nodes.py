"""The steps of SC²: aspects, tables, rounds of matches, the preference."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from langchain_core.embeddings import Embeddings
from langgraph.graph import END
from langgraph.types import Overwrite, Send

from langchain_judges.asking.ask import Question, Reply, ask, recorded
from langchain_judges.asking.embeddings import embedded
from langchain_judges.asking.seeds import sample_seed
from langchain_judges.asking.steps import Effect, Steps, Update
from langchain_judges.memory.example import Example
from langchain_judges.memory.rendering import Reminder, block, cut_failures, told
from langchain_judges.methods.sc2 import prompts as texts
from langchain_judges.methods.sc2.aspects import agree, distinct, normal_form
from langchain_judges.methods.sc2.check import check_table, phrases_of
from langchain_judges.methods.sc2.inference import (
    Match,
    Pairing,
    champion,
    cyclic_triples,
    disputed,
    next_round,
    seeded,
)
from langchain_judges.methods.sc2.options import Options
from langchain_judges.methods.sc2.state import (
    Checked,
    Choice,
    MatchWork,
    PreferenceWork,
    Proposal,
    SC2State,
    Table,
    TableWork,
    table_shapes,
)
from langchain_judges.methods.sc2.tables import (
    fit,
    in_prompt,
    only_row,
    parse_table,
    read_rows,
    silent_rows,
)
from langchain_judges.methods.sc2.tally import decide, how_found
from langchain_judges.orders import ORDER_NAMES, Order, in_slots, preferred_slot
from langchain_judges.rows.texts import check_pair, fence_token, judged, transcript, user_turns
from langchain_judges.verdict import (
    Failure,
    FailureReason,
    Pair,
    Preference,
    add_usage,
    even_verdict,
    not_judged,
)

_LISTS = ("proposals", "tables", "bracket", "choices", "failures", "usages")


@dataclass(frozen=True)
class Reasoning:
    """The steps of the method, with their options and questions."""

    options: Options
    aspects: Question
    table: Question
    match: Question
    preference: Question
    embeddings: Embeddings
    reminding: Reminder | None = None

    def begin(self, state: SC2State) -> Steps[Update]:
        """Check the pair and recall examples; two identical texts are a tie already."""
        yield from ()
        check_pair(state)
        pair = _pair(state)
        same = judged(pair["output_a"]) == judged(pair["output_b"])
        fresh: Update = {
            # A checkpointed thread still holds the lists of its previous run.
            **{key: Overwrite([]) for key in _LISTS},
            **{"aspects": [], "checks": [], "pending": []},
            **{"table": None, "comparisons": None},
            "verdict": even_verdict() if same else None,
        }
        if not self.reminding:
            return fresh
        if same:
            return {**fresh, **self.reminding.untouched}
        found = yield from self.reminding.remind(state)
        cut = Overwrite(cut_failures(found["account"]))
        return {**fresh, "reminded": found, "recalled": found["account"], "failures": cut}

    def ask_aspects(self, state: SC2State) -> list[Send] | str:
        """Send every online sample of aspects."""
        if state.get("verdict"):
            return END
        work: list[TableWork] = [
            {"pair": _pair(state), "aspects": [], "number": i + 1}
            for i in range(self.options.proposals)
        ]
        return [Send("aspects", part) for part in work] or "agree"

    def propose(self, work: TableWork) -> Steps[Update]:
        """Name aspects of one pair, once."""
        number, n = work["number"], self.options.n_aspects
        reply = yield from ask(
            self.aspects,
            {
                **self._material(work["pair"], "AB"),
                "question": self.options.task["question"],
                "n_aspects": n,
            },
            unit=f"sample {number}" if self.options.proposals > 1 else "",
            seed=self._sample(number),
        )
        update: Update = {"failures": reply.failures, "usages": [reply.usage]}
        if not reply.data:
            return update
        if named := distinct(reply.data["aspects"], n):
            found: Proposal = {"sample": number, "aspects": named}
            return {**update, "proposals": [found]}
        blank: Failure = {
            "step": "aspects",
            "unit": f"sample {number}",
            "reason": "empty",
            "detail": "the reply names no aspect",
        }
        return {**update, "failures": [*reply.failures, blank]}

    def agree(self, state: SC2State) -> Steps[Update]:
        """Settle the aspects: the caller's, or what the online samples agree on."""
        if self.options.aspects:
            return {"aspects": list(self.options.aspects)}
        lists = [proposal["aspects"] for proposal in state["proposals"]]
        forms = list(dict.fromkeys(normal_form(p) for each in lists for p in each))
        vectors, failures = yield from self._embedded(
            forms if len(forms) > 1 else [],
            step="aspects",
            unit="merging",
            instead="aspects were merged by their words alone",
        )
        found = agree(lists, vectors, self.options.n_aspects, self.options.agreement)
        return {"aspects": found, "failures": failures}

    def ask_tables(self, state: SC2State) -> list[Send] | str:
        """Send every table that is to be sampled; without aspects there is none."""
        pair, aspects = _pair(state), state["aspects"]
        numbers = list(range(1, self.options.samples + 1))
        if self.options.inference == "random":
            numbers = [seeded(self._seed(pair), "random").choice(numbers)]
        work: list[TableWork] = [
            {"pair": pair, "aspects": aspects, "number": number} for number in numbers
        ]
        return [Send("table", part) for part in work] if aspects else "round"

    def compare(self, work: TableWork) -> Steps[Update]:
        """Sample one table: a row for each aspect, of what is shared and what is not."""
        aspects, number = work["aspects"], work["number"]
        whole, part = table_shapes(len(aspects))
        reply = yield from ask(
            replace(
                self.table,
                shape=whole,
                partial=part,
                parse=partial(parse_table, aspects=aspects),
            ),
            {
                **self._material(work["pair"], "AB"),
                "aspects": "\n".join(f"{i + 1}. {name}" for i, name in enumerate(aspects)),
            },
            unit=f"table {number}",
            seed=self._sample(number),
        )
        table, failures = self._read(reply, aspects, number)
        return {
            "tables": [table],
            "failures": [*reply.failures, *failures],
            "usages": [reply.usage],
        }

    def check(self, state: SC2State) -> Steps[Update]:
        """Check every table without a model."""
        check, tables = self.options.table_check, state["tables"]
        if check is None:
            return {}
        sides = [judged(state["output_a"]), judged(state["output_b"])]
        vectors, failures = yield from self._embedded(
            phrases_of(tables, sides) if check.embed else [],
            step="table",
            unit="table check",
            instead="tables were checked by their words alone",
        )

        def look() -> list[Checked]:
            return [check_table(check, table, sides[0], sides[1], vectors) for table in tables]

        # An entailment model may take seconds; an event loop must not stand still for it.
        found = yield Effect(look, partial(asyncio.to_thread, look))
        return {"checks": found, "failures": failures}

    def round(self, state: SC2State) -> Steps[Update]:
        """Draw the next matches, deciding those that need no comparator; or crown a table."""
        tables = {table["number"]: table for table in state["tables"]}
        if not any(table["valid"] for table in tables.values()):
            return {"pending": [], "table": None, "failures": [_fallback(self.options)]}
        seed = self._seed(_pair(state))
        decided: list[Match] = []
        pending: list[Match] = []
        for lane in self._lanes(state["aspects"]):
            new, open_ = self._advance(lane, state, tables, f"{seed}:{lane}")
            decided += new
            pending += open_
        for match in decided:
            if match["decided_by"] in {"validity", "check"}:
                yield recorded(self.match, match, {**match}, unit=match_name(match))
        if pending:
            return {"bracket": decided, "pending": pending}
        played = [*state["bracket"], *decided]
        best = self._crowned(state["aspects"], tables, played, seed)
        return {
            "bracket": decided,
            "pending": [],
            "table": best,
            "comparisons": {
                "mode": self.options.inference,
                "spent": sum(match["asked"] for match in played),
                # Two legs are one entry where neither had to be asked.
                "saved": sum(match["decided_by"] == "check" for match in played)
                * (2 if self.options.inference == "double_round" else 1),
                "rounds": max((match["round"] for match in played), default=0),
                "cyclic_triples": None
                if self.options.row_wise
                else cyclic_triples(self.options.inference, sorted(tables), played),
            },
        }

    def go_on(self, state: SC2State) -> list[Send] | str:
        """Send the matches of this round, or else the preference."""
        pair = _pair(state)
        tables = {table["number"]: table for table in state["tables"]}
        matches: list[MatchWork] = [
            {"pair": pair, "match": match, "tables": [tables[n] for n in match["tables"]]}
            for match in state["pending"]
        ]
        if matches:
            return [Send("match", part) for part in matches]
        if self.options.table_only and state["table"] is None:
            return "verdict"
        work: list[PreferenceWork] = [
            {
                "pair": pair,
                "aspects": state["aspects"],
                "table": state["table"],
                "order": order,
                "sample": sample,
            }
            for order in self.options.order_list
            for sample in range(self.options.preference_samples)
        ]
        if (reminded := state.get("reminded")) and reminded["examples"]:
            work = [{**part, "examples": reminded["examples"]} for part in work]
        return [Send("preference", part) for part in work]

    def meet(self, work: MatchWork) -> Steps[Update]:
        """Ask which of two tables is more consistent; a coin if it says neither."""
        match, pair = work["match"], work["pair"]
        rows = [only_row(table, match["aspect"])["rows"] for table in work["tables"]]
        first, second = (in_prompt(each) for each in rows)
        fence = fence_token([self._texts(pair), first, second])
        reply = yield from ask(
            self.match,
            {
                **self._material(pair, "AB"),
                "table_fence": fence,
                "table_1": first,
                "table_2": second,
            },
            unit=match_name(match),
        )
        one, other = match["tables"]
        if reply.data:
            winner = one if reply.data["more_consistent"] == "1" else other
            why = " ".join(reply.data["justification"].split())[:500]
            ended: Match = {**match, "winner": winner, "decided_by": "comparator", "why": why}
        else:
            coin = seeded(self._seed(pair), "neither", match_name(match))
            why = "the comparator's reply could not be used"
            winner = coin.choice(sorted(match["tables"]))
            ended = {**match, "winner": winner, "decided_by": "coin", "why": why}
        return {"bracket": [ended], "failures": reply.failures, "usages": [reply.usage]}

    def prefer(self, work: PreferenceWork) -> Steps[Update]:
        """Ask which text is preferred, with the table where there is one."""
        order, sample, pair = work["order"], work["sample"], work["pair"]
        several = self.options.preference_samples > 1
        named = [ORDER_NAMES[order]] if len(self.options.order_list) > 1 else []
        named += [f"sample {sample + 1}"] if several else []
        reply = yield from ask(
            self.preference,
            {
                **self._material(pair, order, work.get("examples", []), reference=True),
                "table": self._shown(work, order),
                "examples": self._examples(work["table"] is not None),
                **self.options.task,
            },
            unit=", ".join(named),
            order=order,
            seed=self._sample(sample + 1) if several else None,
        )
        update: Update = {"failures": reply.failures, "usages": [reply.usage]}
        if reply.data:
            said: Choice = {
                "order": order,
                "sample": sample,
                "preference": preferred_slot(order, reply.data["preferred"]),
                "probability": reply.measured.get("probability"),
                "comparison": reply.data["comparison"],
            }
            update["choices"] = [said]
        return update

    def conclude(self, state: SC2State) -> Steps[Update]:
        """Combine the preferences, and put the bracket in order."""
        yield from ()
        usage = add_usage(state["usages"])
        table, failures = state["table"], state["failures"]
        lanes = self._lanes(state["aspects"])
        order = {lane: i for i, lane in enumerate(lanes)}
        played = sorted(
            state["bracket"], key=lambda m: (order[m["aspect"]], m["round"], m["match"])
        )
        if self.options.table_only and table is None:
            why = "Not judged: there is no table, and the texts are hidden."
            return {"verdict": not_judged(failures, usage, why), "bracket": Overwrite(played)}
        how = how_found(table, self.options.samples, state["comparisons"])
        sides = [judged(state["output_a"]), judged(state["output_b"])]
        # A coin between the texts and not their places, so that swapping them mirrors it.
        drawn = seeded(self._seed(_pair(state)), "samples").choice(sorted(sides))
        coin: Preference = "A" if drawn == sides[0] else "B"
        verdict = decide(self.options, state["choices"], failures, usage, how, coin)
        return {"verdict": verdict, "bracket": Overwrite(played)}

    def _read(
        self, reply: Reply, aspects: Sequence[str], number: int
    ) -> tuple[Table, list[Failure]]:
        """Return the table of a reply, and what is missing or was cut."""
        unit = f"table {number}"
        if reply.data is None:
            return {"number": number, "rows": [], "valid": False}, []
        rows = read_rows(reply.data, aspects)
        silent = silent_rows(rows)
        valid = 2 * len(silent) < len(rows)
        failures: list[Failure] = []
        if reply.problem:
            # A part of the reply is used; what is missing are cells that say nothing.
            failures.append(_failure(unit, "missing", reply.problem.detail))
        elif not valid:
            detail = f"nothing is said of {', '.join(silent)}"
            failures.append(_failure(unit, "empty", detail))
        fitting = fit(rows, self.options.max_table)
        if fitting != rows:
            detail = f"cells were cut to fit {self.options.max_table:,} characters"
            failures.append(_failure(unit, "input_cut", detail))
        return {"number": number, "rows": fitting, "valid": valid}, failures

    def _advance(
        self, lane: str, state: SC2State, tables: Mapping[int, Table], seed: str
    ) -> tuple[list[Match], list[Match]]:
        """Return matches that decide themselves, and the next that need the comparator."""
        played = [match for match in state["bracket"] if match["aspect"] == lane]
        decided = disputed(played, seed)
        checks = {check["number"]: check for check in state["checks"]}
        while True:
            done = [*played, *decided]
            number = max((match["round"] for match in done), default=0) + 1
            drawn = next_round(self.options.inference, sorted(tables), done, seed)
            pending: list[Match] = []
            for pairing in drawn:
                match = _drawn(pairing, number, lane)
                free = self._free(match, tables, checks, seed)
                if not free:
                    pending.append(match)
                elif not any(_same(free, other) for other in decided):
                    decided.append(free)
            if pending or not drawn:
                return decided, pending

    def _free(
        self,
        match: Match,
        tables: Mapping[int, Table],
        checks: Mapping[int, Checked],
        seed: str,
    ) -> Match | None:
        """Decide a match without the comparator, if that can be done."""
        free: Match = {**match, "asked": False}
        if len(match["tables"]) == 1:
            return {**free, "winner": match["tables"][0], "decided_by": "bye", "why": "bye"}
        shown = {n: only_row(tables[n], match["aspect"]) for n in match["tables"]}
        valid = [n for n, table in shown.items() if table["valid"]]
        if match["aspect"]:
            # A row that says nothing overlaps with nothing: a comparator may find it best.
            valid = [n for n in valid if not silent_rows(shown[n]["rows"])]
        if len(valid) == 1:
            why = f"the other {'row says nothing' if match['aspect'] else 'table is not valid'}"
            return {**free, "winner": valid[0], "decided_by": "validity", "why": why}
        if not valid:
            winner = seeded(seed, "invalid", match_name(match)).choice(sorted(match["tables"]))
            why = "neither row says a thing" if match["aspect"] else "neither is valid"
            return {**free, "winner": winner, "decided_by": "coin", "why": why}
        check = self.options.table_check
        if check is None or not check.prefilter:
            return None
        clean = [n for n in match["tables"] if checks[n]["clean"]]
        if len(clean) != 1:
            return None
        why = "only this table passed the table check"
        return {**free, "winner": clean[0], "decided_by": "check", "why": why}

    def _crowned(
        self,
        aspects: Sequence[str],
        tables: Mapping[int, Table],
        played: Sequence[Match],
        seed: str,
    ) -> Table:
        """Return the winner, or with `row_wise` the table of the rows that won."""
        winners = {
            lane: champion(
                self.options.inference,
                sorted(tables),
                [match for match in played if match["aspect"] == lane],
                f"{seed}:{lane}",
            )
            or 0
            for lane in self._lanes(aspects)
        }
        if not self.options.row_wise:
            return tables[winners[""]]
        rows = [tables[winners[a]]["rows"][i] for i, a in enumerate(aspects)]
        return {"number": 0, "rows": rows, "valid": True}

    def _lanes(self, aspects: Sequence[str]) -> list[str]:
        """Return what is searched for by itself: every row, or the whole table as ''."""
        return list(aspects) if self.options.row_wise else [""]

    def _embedded(
        self, phrases: list[str], **told: str
    ) -> Steps[tuple[dict[str, Sequence[float]], list[Failure]]]:
        vectors, failures = yield from embedded(self.embeddings, phrases, **told)
        return dict(zip(phrases, vectors or [], strict=False)), failures

    def _sample(self, number: int) -> int:
        return sample_seed(self.options.seed, number)

    def _seed(self, pair: Pair) -> str:
        """Return what coins hang on: the judge's seed and the pair, whichever text is A."""
        return f"{self.options.seed}:{self._texts(pair)}"

    def _texts(self, pair: Pair) -> str:
        sides = (judged(pair["output_a"]), judged(pair["output_b"]))
        return fence_token([transcript(pair["input"]), *sides])

    def _material(
        self,
        pair: Pair,
        order: Order,
        examples: Sequence[Example] = (),
        *,
        reference: bool = False,
    ) -> dict[str, object]:
        a, b = judged(pair["output_a"]), judged(pair["output_b"])
        first, second = in_slots(order, a, b)
        request, added = transcript(pair["input"]), self.options.instructions
        known = pair.get("reference") or ""
        # One token for all calls, those that do not see the reference too: they share a prefix.
        token = fence_token([request, a, b, *([known] if known else []), *told(examples)])
        shown = texts.REFERENCE.format(fence=token, reference=known)
        return {
            "fence": token,
            "request": request,
            "response_1": first,
            "response_2": second,
            "focus": texts.FOCUS if user_turns(pair["input"]) > 1 else "",
            "instructions": (texts.INSTRUCTIONS.format(instructions=added) if added else "")
            + (shown if known and reference else "")
            + block(examples, token, order=order),
        }

    def _shown(self, work: PreferenceWork, order: Order) -> str:
        """Render the table for the preference prompt, by slots; empty without a table."""
        if work["table"] is None:
            return ""
        pair, rows = work["pair"], work["table"]["rows"]
        # Hashed in one order, so that both orders carry the same token.
        fence = fence_token([transcript(pair["input"]), self._texts(pair), in_prompt(rows)])
        return texts.SHOWN_TABLE.format(table_fence=fence, table=in_prompt(rows, order))

    def _examples(self, tables: bool) -> str:
        shown = [
            texts.EXAMPLE.format(
                number=i + 1,
                **{
                    **example,
                    "table": f"{in_prompt(example['rows'])}\n"  # type: ignore[arg-type]
                    if tables
                    else "",
                },
            )
            for i, example in enumerate(self.options.examples)
        ]
        return texts.EXAMPLES.format(examples="\n\n".join(shown)) if shown else ""


def match_name(match: Match) -> str:
    """Return what a match is called: `match 1.2: table 3 vs table 5`, first shown first."""
    tables = " vs ".join(f"table {number}" for number in match["tables"])
    row = f" ({match['aspect']})" if match["aspect"] else ""
    return f"match {match['round']}.{match['match']}: {tables}{row}"


def _pair(state: SC2State) -> Pair:
    return {
        "input": state["input"],
        "output_a": state["output_a"],
        "output_b": state["output_b"],
        "reference": state.get("reference"),
    }


def _drawn(pairing: Pairing, number: int, lane: str) -> Match:
    return {
        "round": number,
        "match": pairing.match,
        "tables": list(pairing.tables),
        "winner": None,
        "decided_by": "comparator",
        "why": "",
        "asked": True,
        "aspect": lane,
    }


def _same(one: Match, other: Match) -> bool:
    """Say whether two entries are one match, as the two orders of it are."""
    return (one["round"], one["match"]) == (other["round"], other["match"])


def _failure(unit: str, reason: FailureReason, detail: str) -> Failure:
    return {"step": "table", "unit": unit, "reason": reason, "detail": detail}


def _fallback(options: Options) -> Failure:
    instead = "nothing is left to prefer by" if options.table_only else "compared directly"
    return _failure("every table", "missing", f"no table could be used: {instead}")
