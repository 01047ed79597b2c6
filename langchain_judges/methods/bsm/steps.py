"""The steps of the Branch-Solve-Merge judge: reference, branch, solve, merge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from langgraph.types import Send

from langchain_judges.asking.ask import ask
from langchain_judges.asking.nodes import Call, Next
from langchain_judges.asking.question import Question, Reply, sample_seed
from langchain_judges.asking.steps import Steps, Update, together
from langchain_judges.memory.shown import block, example_texts
from langchain_judges.methods.bsm import prompts as texts
from langchain_judges.methods.bsm.expected import unmeasured, with_confidence
from langchain_judges.methods.bsm.findings import findings, weighed
from langchain_judges.methods.bsm.parse import parse_scores
from langchain_judges.methods.bsm.planning import PlanSteps
from langchain_judges.methods.bsm.replies import BSMState, OrderResult, SolveWork
from langchain_judges.methods.bsm.tally import (
    ScoreCells,
    decide,
    mean_scores,
    order_totals,
    quorum,
    weights_of,
)
from langchain_judges.methods.expected import ALTERNATIVES, expected, score_chances
from langchain_judges.methods.pairs import examples_in, fences, pair_of, reference_block
from langchain_judges.methods.replies import (
    Choice,
    PlanLine,
    PlanScore,
    scores_shape,
    several_scores_shape,
)
from langchain_judges.orders import ORDER_NAMES, Order, by_identity, in_slots, naming_identities
from langchain_judges.rows.fences import fence
from langchain_judges.rows.texts import judged, transcript
from langchain_judges.verdict import Pair, add_usage, not_judged


@dataclass(frozen=True)
class BSMSteps(PlanSteps):
    """The steps of the method."""

    def seen(self, pair: Pair, side: str) -> tuple[str, str]:
        """Return what a model sees of one side: its request and its judged text."""
        text = pair[side]  # type: ignore[literal-required]
        earlier = text if self.options.show_turn1_answers else ""
        return transcript(pair["input"], earlier), judged(text)

    def solve_each(self, state: BSMState) -> Next:
        """Send every criterion, in every order, as often as it is sampled."""
        options, pair = self.options, pair_of(state)
        if options.reference_model is not None:
            if not state.get("written_reference"):
                return "merge"
            pair["reference"] = state["written_reference"]
        return [
            Send("solve", SolveWork(pair=pair, criteria=batch, order=order, sample=sample))
            for batch, order in self._batches(state["criteria"])
            for sample in range(options.samples)
        ] or "merge"

    def _batches(self, plan: Sequence[PlanLine]) -> Iterator[tuple[list[PlanLine], Order]]:
        """Yield what each solve call scores, and in which order."""
        size = self.options.batch_criteria
        for start in range(0, len(plan), size):
            for order in self.options.order_list:
                criteria = [c for c in plan if c.get("order", order) == order]
                if criteria[start : start + size]:
                    yield criteria[start : start + size], order

    def solve(self, work: SolveWork) -> Call:
        """Ask for the scores of both texts on one criterion or some, in one order."""
        options, order, criteria = self.options, work["order"], work["criteria"]
        explanation = texts.EXPLAINED_FIRST if options.explain_first else texts.EXPLAINED
        one = len(criteria) == 1
        lines = [f"{c['name']}: {c['description']}".strip(": ") for c in criteria]
        numbered = "\n".join(f"{n}. {each}" for n, each in enumerate(lines, 1))
        reply = (texts.REPLY if one else texts.REPLIES).format(explanation=explanation)
        variables = {
            **self.material(work["pair"], order),
            **self.scale,
            "what": texts.ONE if one else texts.SEVERAL,
            "reply": reply,
            "criterion": texts.CRITERION.format(criteria=lines[0])
            if one
            else texts.CRITERIA.format(criteria=numbered),
        }
        several = options.samples > 1
        sampled = f", sample {work['sample'] + 1}" if several else ""
        names = ", ".join(criterion["name"] for criterion in criteria)
        return Call(
            self._solving(len(criteria)),
            variables,
            f"{names} ({ORDER_NAMES[order]}{sampled})",
            order,
            sample_seed(options.seed, work["sample"]) if several else None,
        )

    def _solving(self, criteria: int) -> Question:
        options, one = self.options, criteria == 1
        mean = options.score == "mean"
        planned = len(options.plan) or options.max_criteria
        shape = (
            scores_shape(options.scale, options.explain_first)
            if one
            else several_scores_shape(options.scale, criteria, options.explain_first)
        )
        return self.context.question(
            "solve",
            shape,
            parse=parse_scores if one else None,
            sampled=options.samples > 1,
            shares_material=options.samples > 1 or options.batch_criteria < planned,
            logprobs=mean,
            alternatives=ALTERNATIVES if mean else 0,
            measure=partial(score_chances, scale=options.scale) if mean else None,
            measured_as="score chances" if mean else "",
        )

    def solved(self, work: SolveWork, reply: Reply) -> Update:
        """Keep the scores by identity of the texts."""
        if not reply.data:
            return {}
        order, one = work["order"], len(work["criteria"]) == 1
        subscores: list[PlanScore] = []
        for n, criterion in enumerate(work["criteria"], 1):
            part = "" if one else f"criterion_{n}"
            fields = reply.data[part] if part else reply.data
            chances = reply.measured.get(part)
            scores = [fields["score_1"], fields["score_2"]]
            if chances:
                scores = [expected(each) for each in chances]
            line: PlanScore = {
                "criterion": criterion["name"],
                "order": order,
                "sample": work["sample"],
                "scores": by_identity(order, scores[0], scores[1]),
                "explanation": naming_identities(fields["explanation"], order),
            }
            if chances:
                line["chances"] = by_identity(order, *chances)
            subscores.append(line)
        return {"subscores": subscores} | unmeasured(self.options, work, reply)

    def merge(self, state: BSMState) -> Steps[Update]:
        """Sum or weigh the findings of each order, then combine the orders."""
        options, criteria = self.options, state["criteria"]
        failures, usages = list(state["failures"]), list(state["usages"])
        cells = mean_scores(criteria, state["subscores"], options.order_list)
        weights = weights_of(options, criteria)
        reason = quorum(options, criteria, cells)
        by_order: dict[Order, OrderResult] = {}
        if reason is None:
            by_order = {
                order: order_totals(order, cells, weights) for order in options.order_list
            }
        if by_order and options.merge == "model":
            replies = yield from together(
                [self._weigh(state, order, cells) for order in options.order_list]
            )
            for order, reply in zip(options.order_list, replies, strict=True):
                failures += reply.failures
                usages.append(reply.usage)
                by_order[order] = weighed(order, reply, by_order[order])
        usage = add_usage(usages)
        undecided = any(result["preference"] is None for result in by_order.values())
        if reason or undecided:
            verdict = not_judged(failures, usage, reason or "")
        else:
            verdict = decide(options, cells, weights, by_order, failures, usage)
            verdict = with_confidence(options, by_order, verdict, state["subscores"], weights)
        return {"verdict": verdict, "by_order": by_order}

    def _weigh(self, state: BSMState, order: Order, cells: ScoreCells) -> Steps[Reply]:
        request, findings_text = transcript(state["input"]), findings(state, order, cells)
        examples = examples_in(state)
        lessons = block(examples, fence(*example_texts(examples)), order=order, noun=self.noun)
        variables = {
            "fence_request": fence(request),
            "fence_findings": fence(findings_text),
            "request": request,
            "findings": findings_text,
            **self.scale,
            **self.frame(pair_of(state), lessons),
        }
        question = self.context.question("merge", Choice)
        return ask(question, variables, unit=ORDER_NAMES[order], order=order)

    def material(self, pair: Pair, order: Order) -> dict[str, object]:
        """Return the variables of a prompt that shows request, reference and both texts.

        What the memory recalled stands in the plan, or where the findings are weighed. With
        the answers of earlier turns each side has a request of its own.
        """
        request_a, text_a = self.seen(pair, "output_a")
        request_b, text_b = self.seen(pair, "output_b")
        request = request_a
        if request_a != request_b:
            first, second = in_slots(order, request_a, request_b)
            request = f"As response 1 saw it:\n{first}\n\nAs response 2 saw it:\n{second}"
        first, second = in_slots(order, text_a, text_b)
        reference = pair.get("reference") or ""
        return {
            **fences(request, first, second),
            "request": request,
            "reference": reference_block(reference),
            "known": texts.REFERENCE_NOTE if reference else "",
            "response_1": first,
            "response_2": second,
            **self.frame(pair),
        }
