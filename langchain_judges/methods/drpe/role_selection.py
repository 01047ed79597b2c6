"""Seating the panel (DRPE, section 3.1): a model names readers, the diverse ones sit."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from langchain_judges.asking import effects, reading, reply_log
from langchain_judges.asking.ask import ask
from langchain_judges.asking.embeddings import SentenceEmbeddings, default_embeddings, embedded
from langchain_judges.asking.question import Account, Question, Reply
from langchain_judges.methods import declaration, tasks
from langchain_judges.methods.drpe.options import DRPE, WORDS, Panel
from langchain_judges.methods.drpe.tally import DRPEState, readers_shape
from langchain_judges.methods.pairs import PairState, PairSteps, ShownPair, coin_side, pair_of
from langchain_judges.orders import Order
from langchain_judges.rows import fences, texts
from langchain_judges.verdict import Failure, Pair, Role

Points = NDArray[np.float64]
Indices = NDArray[np.intp]

# Held during a fit: scikit-learn lowers the threads of the whole process and sets them back,
# and two fits at a time would leave them low.
_FITS = threading.Lock()


def _proposals(replies: Mapping[str, Reply]) -> list[Any]:
    """The readers that replies name, coarse before fine, each with its kind."""
    readers: list[Any] = []
    for kind, reply in replies.items():
        data = reply.data or {}
        parts = {kind: data.get("readers", [])}
        if kind == "merged":
            parts = {"coarse": data.get("general", []), "fine": data.get("familiarity", [])}
        readers += [{**one, "kind": source} for source, named in parts.items() for one in named]
    return readers


class RoleSteps(PairSteps):
    """The steps that find the roles."""

    options: DRPE

    def task(self, pair: Pair) -> tuple[str, tasks.Task]:
        """The task of a pair, and its name."""
        return tasks.choose_task(self.options.task, pair)

    def orders(self, pair: Pair) -> tuple[Order, ...]:
        """The orders to ask; where it is one, a coin may choose it."""
        options = self.options
        if options.orders != "none" or options.voting.first == "reference":
            return options.order_list
        return ("AB",) if coin_side(pair, options.seed) == "A" else ("BA",)

    @cached_property
    def embeddings(self) -> Embeddings:
        """The embedder of the roles, where they are clustered."""
        clusters = self.panel.clustering and self.panel.dynamic
        if self.options.embeddings or not clusters:
            return self.options.embeddings or SentenceEmbeddings()
        return default_embeddings(", or no readers: `preset=manual`, or `panel.dynamic` 0")

    @cached_property
    def panels(self) -> effects.SingleFlight[tuple[list[Role], list[Failure]]]:
        """The panels that were seated, for rows of the same text."""
        return effects.SingleFlight()

    @property
    def panel(self) -> Panel:
        """Who sits."""
        return self.options.panel

    def questions(self, *, open_task: bool) -> Mapping[str, Question]:
        """By the kind of readers that they ask for: `coarse` and `fine`, or `merged`."""
        panel = self.panel
        shape = readers_shape(panel.readers, panel.merged_prompt, is_open=open_task)
        return {
            kind: self.context.question("roles", shape, kind, is_shared=True)
            for kind in self.options.kinds
        }

    def begin(self, state: PairState, account: Account) -> effects.Update:
        """Check the pair, and say what it is about and whose roles it may share."""
        update = super().begin(state, account)
        name, task = self.task(pair_of(state))
        return {**update, "task": name, "roles_key": self.key(self._context(state), task)}

    async def roles(self, state: DRPEState, account: Account) -> effects.Update:
        """Seat the panel: the static judges, and diverse readers of the text."""
        pair = pair_of(state)
        proposed, seated = list[Any](), list[Role]()
        replies: Mapping[str, Reply] = {}
        if self.panel.dynamic:
            replies = await self._replies(self._context(state), pair, account)
            # Readers beyond those that were asked for would be votes that nobody counted on.
            distinct = distinct_roles(_proposals(replies))
            proposed = first_of_each_kind(distinct, self.panel.readers)
        kinds = ((reply.data or {}).get("wanted") for reply in replies.values())
        if wanted := next(filter(None, kinds), None):
            pair["task_kind"] = wanted
        name, task = self.task(pair)
        static = self.panel.static_roles(task)
        if self.panel.dynamic:
            names = {role["type"].casefold() for role in static}
            new = [role for role in proposed if role["type"].casefold() not in names]
            seated = await self._seated(new, account)
        roles = [*static, *seated]
        effects.emit_each("role", "roles", roles)
        said = {"task": name, "task_kind": wanted} if wanted else {}
        return {"proposed": proposed, "roles": roles, **said}

    def _context(self, state: PairState) -> str:
        """The text that the role prompts see."""
        if self.panel.context == "candidate":
            return texts.shown(state["output_a"])
        return texts.shown_task(state["input"])

    def key(self, text: str, task: tasks.Task) -> str:
        """A key that is equal where the same roles would be found."""
        identity = self.context.adapters["roles"].identity
        view = [fences.unsealed(text), self.panel.as_json(), identity, self.context.version]
        about = [self._sought(task), self.panel.static_roles(task)]
        return reply_log.key_of([view, about, self.options.seed])[:16]

    async def _replies(self, text: str, pair: ShownPair, account: Account) -> dict[str, Reply]:
        """Ask for readers of both kinds; rows of the same text share the replies.

        Where nobody says what the texts are, the model that reads the request does.
        """
        open_task = self.panel.context == "article" and tasks.is_unsaid(self.options.task, pair)
        variables = {
            "fence_text": fences.fence(text),
            "text": text,
            "sought": self._sought(self.task(pair)[1]),
            "pool": self.panel.readers,
            "wanted": WORDS["wanted"] if open_task else "",
        }
        questions = self.questions(open_task=open_task)
        asks = [ask(q, variables, account.part(), unit=kind) for kind, q in questions.items()]
        return dict(zip(questions, await effects.gather(asks), strict=True))

    async def _seated(self, pool: list[Role], account: Account) -> list[Role]:
        """Choose the diverse ones."""
        target, seats = self.panel.dynamic, pool
        if len(pool) < target and (pool or not account.failures):
            few = reading.Problem("missing", f"{len(pool)} usable roles came, {target} were wanted")
            account.fail([few.failure("roles", "")])
        if self.panel.clustering and pool:
            key = json.dumps([pool, target])
            (seats, failures), _ = await self.panels.get(
                key, lambda: self._diverse(pool, target), lambda seated: not seated[1]
            )
            account.fail(failures)
        return seats

    def _sought(self, task: tasks.Task) -> str:
        """The text that readers read: something for the text shown, or that text itself."""
        return "this text" if self.panel.context == "candidate" else task["sought"]

    async def _diverse(self, pool: list[Role], seats: int) -> tuple[list[Role], list[Failure]]:
        """One role for each cluster; the first ones, where the embedder fails."""
        vectors, failures = await embedded(
            self.embeddings,
            [declaration.with_name(role["type"], role["description"]) for role in pool],
            step="roles",
            unit="clustering",
            instead="roles were not clustered, the first ones sit",
        )
        if vectors is None:
            return pool[:seats], failures
        # Loading scikit-learn and clustering take long enough to hold up a loop.
        medoids = await effects.aside(lambda: self._medoids(vectors, seats))
        return [pool[i] for i in sorted(medoids[:seats])], failures

    def _medoids(self, vectors: Sequence[Sequence[float]], seats: int) -> list[int]:
        if self.panel.clustering == "kmeans":
            return kmeans_medoids(vectors, seats, self.options.seed)
        return dbscan_medoids(vectors)


def distinct_roles(roles: Sequence[Role]) -> list[Role]:
    """The roles that have a type and a description, the first of each type."""
    by_name: dict[str, Role] = {}
    for role in roles:
        name = " ".join(role["type"].split())[:60].strip(" .:*-")
        description = " ".join(role["description"].split())[:300]
        if name and description:
            whole: Role = {"type": name, "description": description, "kind": role["kind"]}
            by_name.setdefault(name.casefold(), whole)
    return list(by_name.values())


def first_of_each_kind(roles: Sequence[Role], most: int) -> list[Role]:
    """The roles without those of a kind behind its first `most`."""
    kinds = [role["kind"] for role in roles]
    return [role for i, role in enumerate(roles) if kinds[:i].count(role["kind"]) < most]


def kmeans_medoids(vectors: Sequence[Sequence[float]], k: int, seed: int) -> list[int]:
    """The indices of the members nearest to the k centres, in their own order.

    Args:
        vectors: One row for each role, of unit length.
        k: Clusters wanted; all members are kept where there are no more than that.
        seed: Of the starts.
    """
    if not 0 < k < len(vectors):
        return list(range(len(vectors)))[: max(k, 0)]
    from sklearn.cluster import KMeans

    points = np.asarray(vectors, dtype=float)
    # Equal texts have equal vectors, and there may be fewer distinct ones than clusters.
    distinct = len({*map(tuple, points.round(9).tolist())})
    # For a dozen points threads mostly wait for each other.
    with _FITS, _threads().limit(limits=1, user_api="openmp"):
        fit = KMeans(n_clusters=min(k, distinct), n_init=10, random_state=seed).fit(points)
    medoids = [
        _nearest(points, np.flatnonzero(fit.labels_ == label), centre)
        for label, centre in enumerate(fit.cluster_centers_)
    ]
    rest = [i for i in range(len(points)) if i not in medoids]
    return sorted([*medoids, *rest[: k - len(medoids)]])


@cache
def _threads() -> Any:
    """The threads of scikit-learn, once it is loaded: to find them takes as long as a fit."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def dbscan_medoids(vectors: Sequence[Sequence[float]], *, eps: float = 0.35) -> list[int]:
    """The member nearest to the mean of each dense cluster, and every noise member.

    Those of larger clusters come first, noise last.

    Args:
        vectors: One row for each role.
        eps: Largest cosine distance between neighbours.
    """
    if not len(vectors):
        return []
    from sklearn.cluster import DBSCAN

    points = np.asarray(vectors, dtype=float)
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    points = points / np.where(lengths > 0, lengths, 1.0)
    labels = DBSCAN(eps=eps, min_samples=2, metric="cosine").fit(points).labels_
    clusters = {*labels.tolist()} - {-1}
    groups: list[Indices] = [np.flatnonzero(labels == label) for label in clusters]
    groups += [np.asarray([index]) for index in np.flatnonzero(labels == -1)]
    groups.sort(key=lambda group: (-len(group), int(group[0])))
    return [_nearest(points, group, points[group].mean(axis=0)) for group in groups]


def _nearest(points: Points, members: Indices, centre: Points) -> int:
    """The member nearest to a centre; of equals the first."""
    distances = np.linalg.norm(points[members] - centre, axis=1).round(9)
    return int(members[int(np.argmin(distances))])
