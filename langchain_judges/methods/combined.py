"""The graph that a judge made of judges is."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from langchain_judges.errors import OptionError
from langchain_judges.methods.graph import JudgeGraph
from langchain_judges.methods.marks import memory_of, unwrapped
from langchain_judges.methods.members import Member
from langchain_judges.methods.specs import JudgeSpec


class Memories(NamedTuple):
    """Stands for the memories of several members."""

    version: str


class CombinedGraph(JudgeGraph):
    """A judge made of judges."""

    @property
    def members(self) -> tuple[Member, ...]:
        """The judges that it asks."""
        return cast("tuple[Member, ...]", self.model)

    @property
    def spec(self) -> JudgeSpec:
        """The judge as plain JSON, with the spec of each member under `model`.

        Raises:
            OptionError: A member cannot be written as JSON.
        """
        specs = []
        for member in self.members:
            judge = unwrapped(member.judge)
            if not isinstance(judge, JudgeGraph):
                raise OptionError(
                    f"the member {member.name!r} is a runnable of your own, which no JSON holds"
                )
            specs.append(judge.spec)
        options = self.options.sendable()
        return {"method": self.options.method, "model": specs, "options": options}

    @property
    def memory(self) -> Any:
        """The memory of its members; of several, what tells their versions."""
        memories = {id(each): each for m in self.members if (each := memory_of(m.judge))}
        if len(memories) < 2:
            return next(iter(memories.values()), None)
        return Memories(" ".join(str(each.version) for each in memories.values()))
