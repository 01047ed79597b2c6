"""Who sits: readers of a text are named by a model, and the diverse ones chosen."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from langchain_core.embeddings import Embeddings

from langchain_judges.asking.ask import ask
from langchain_judges.asking.models.embeddings import embedded
from langchain_judges.asking.question import Question, Reply
from langchain_judges.asking.steps import Steps, Update, Wait, together
from langchain_judges.methods.drpe import prompts as texts
from langchain_judges.methods.drpe.cluster import dbscan_medoids, kmeans_medoids
from langchain_judges.methods.drpe.panel import Panel
from langchain_judges.methods.drpe.roles import alternating, distinct, first_of_each_kind
from langchain_judges.methods.tasks import Task
from langchain_judges.rows.fences import fence
from langchain_judges.verdict import Failure, Role


class Context(NamedTuple):
    """What the role prompts see."""

    text: str
    candidate: str
    """Empty where they see one text alone."""


@dataclass(frozen=True)
class Seating:
    """How the roles of a text are found (DRPE, section 3.1)."""

    panel: Panel
    questions: Mapping[str, Question]
    """By the kind of readers that they ask for: `coarse` and `fine`, or `merged`."""
    embeddings: Embeddings
    seed: int

    def key(self, context: Context, task: Task) -> str:
        """Return what is equal where the same roles would be found."""
        question = next(iter(self.questions.values()))
        view = [context, self.panel.as_json(), question.adapter.identity, question.version]
        about = [task["sought"], self.panel.static_roles(task)]
        data = json.dumps([view, about, self.seed], sort_keys=True, default=str)
        return hashlib.sha256(data.encode()).hexdigest()[:16]

    def draw(self, context: Context, task: Task) -> Steps[Update]:
        """Ask for readers of both kinds and choose the diverse ones."""
        asks = [self._ask(kind, context, task["sought"]) for kind in self.questions]
        replies = yield from together(asks)
        by_kind = dict(zip(self.questions, replies, strict=True))
        # Readers beyond those that were asked for would be votes that nobody counted on.
        proposed = first_of_each_kind(distinct(_proposals(by_kind)), self.panel.readers)
        failures = [failure for reply in replies for failure in reply.failures]
        static = self.panel.static_roles(task)
        usable, target = len(_new(proposed, static)), self.panel.dynamic
        if usable < target and (usable or not failures):
            failures.append(
                {
                    "step": "roles",
                    "unit": "",
                    "reason": "missing",
                    "detail": f"{usable} usable roles came, {target} were wanted",
                }
            )
        roles, unclustered = yield from self._choose(proposed, static)
        return {
            "proposed": proposed,
            "roles": roles,
            "failures": failures + unclustered,
            "usages": [reply.usage for reply in replies],
            "whole": all(reply.data for reply in replies) and not unclustered,
        }

    def _ask(self, kind: str, context: Context, sought: str) -> Steps[Reply]:
        text, candidate = context
        summaries = texts.SUMMARIES.format(fence_1=fence(candidate), candidate_1=candidate)
        variables = {
            "fence_text": fence(text),
            "text": text,
            "sought": sought,
            "summaries": summaries if candidate else "",
            "pool": self.panel.readers,
        }
        return ask(self.questions[kind], variables, unit=kind)

    def _choose(
        self, proposed: list[Role], static: Sequence[Role]
    ) -> Steps[tuple[list[Role], list[Failure]]]:
        """Return the panel: static roles, and those that stand for their cluster."""
        together_too = self.panel.clustered == "all"
        pool = [*(static if together_too else ()), *_new(proposed, static)]
        seats = self.panel.dynamic + (len(static) if together_too else 0)
        failures: list[Failure] = []
        if self.panel.clustering and pool:
            pool, failures = yield from self._diverse(pool, seats)
        return (pool if together_too else [*static, *pool]), failures

    def _diverse(self, pool: list[Role], seats: int) -> Steps[tuple[list[Role], list[Failure]]]:
        """Return one role for each cluster; of each kind in turn, where the embedder fails."""
        vectors, failures = yield from embedded(
            self.embeddings,
            [f"{role['type']}: {role['description']}" for role in pool],
            step="roles",
            unit="clustering",
            instead="roles were not clustered, the first of each kind sit",
        )
        if vectors is None:
            places = alternating(pool, range(len(pool)), seats)
            return [pool[i] for i in sorted(places)], failures
        # Loading scikit-learn and clustering take long enough to hold up a loop.
        medoids = yield Wait(
            lambda: self._medoids(vectors, seats),
            lambda: asyncio.to_thread(self._medoids, vectors, seats),
        )
        if self.panel.clustering == "dbscan" and self.panel.capped:
            medoids = alternating(pool, medoids, seats)
        return [pool[i] for i in sorted(medoids)], failures

    def _medoids(self, vectors: Sequence[Sequence[float]], seats: int) -> list[int]:
        if self.panel.clustering == "kmeans":
            return kmeans_medoids(vectors, seats, self.seed)
        return dbscan_medoids(vectors, eps=self.panel.eps, min_samples=self.panel.min_samples)


def _new(proposed: Sequence[Role], static: Sequence[Role]) -> list[Role]:
    """Return the proposed roles that do not sit on the panel already."""
    names = {role["type"].casefold() for role in static}
    return [role for role in proposed if role["type"].casefold() not in names]


def _proposals(replies: Mapping[str, Reply]) -> list[Any]:
    """Return the readers that replies name, coarse before fine, each with its kind."""
    readers: list[Any] = []
    for kind, reply in replies.items():
        data = reply.data or {}
        parts = {kind: data.get("readers", [])}
        if kind == "merged":
            parts = {"coarse": data.get("general", []), "fine": data.get("familiarity", [])}
        readers += [
            {**each, "kind": source} for source, named in parts.items() for each in named
        ]
    return readers
