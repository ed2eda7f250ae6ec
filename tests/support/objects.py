"""Classes of users that arguments and results are put into."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple


class Point(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass
class Body:
    place: Any
    speed: Any
    kind: str = dataclasses.field(default="ball", metadata={"static": True})
