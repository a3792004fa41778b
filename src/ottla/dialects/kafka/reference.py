"""The reference page `docs/reference/apis.md`, made from the tables of APIs and of handlers.

`python -m ottla.dialects.kafka.reference docs/reference` writes it; a test holds the page in the tree to that.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ottla.dialects.kafka.router import UNANNOUNCED, Route, Router
from ottla.protocol.apis import ALWAYS, API, NEVER, Api

HEAD: Final = """\
# APIs and versions

This page is made from `src/ottla/protocol/apis.py` and `src/ottla/dialects/kafka/router.py` by
`python -m ottla.dialects.kafka.reference docs/reference`.

What a client learns from ApiVersions is the column *announced*. What is *served* is what gets an answer; the two differ
where clients look at an old version without sending it, or where Kafka serves what it does not announce. *Flexible*
versions have compact lengths and tagged fields. `ottla cluster --versions` shows the same of any running cluster.

"""

SERVED: Final = """\
| key | API | served | announced | flexible |
|--:|---|---|---|---|
"""

NOT_SERVED: Final = """\

## Not served

Kafka 4.4 has these on its broker listener too. They are not announced here, so that a client says what it misses
instead of waiting for it. Their messages are declared in `src/ottla/protocol/messages/` all the same.

| key | API | versions |
|--:|---|---|
"""


def apis_page() -> str:
    """Return `apis.md`."""
    routes = Router().served()
    served = "".join(_served_lines(routes))
    others = "".join(f"| {key} | {api.name} | {_range(api.announced)} |\n" for key, api in _others(routes))
    return HEAD + SERVED + served + (NOT_SERVED + others if others else "")


def _served_lines(routes: dict[int, Route]) -> Iterator[str]:
    for key, route in sorted(routes.items()):
        api = API[key]
        announced = "" if key in UNANNOUNCED else _range(api.announced)
        served = _range((route.min_version, route.max_version))
        yield f"| {key} | {api.name} | {served} | {announced} | {_flexible(api)} |\n"


def _others(routes: dict[int, Route]) -> Iterator[tuple[int, Api]]:
    return ((key, api) for key, api in sorted(API.items()) if key not in routes)


def _range(versions: tuple[int, int]) -> str:
    low, high = versions
    return str(low) if low == high else f"{low}–{high}"


def _flexible(api: Api) -> str:
    if api.flexible_from == ALWAYS:
        return "all"
    return "none" if api.flexible_from == NEVER else f"from {api.flexible_from}"


if __name__ == "__main__":
    (Path(sys.argv[1]) / "apis.md").write_text(apis_page(), encoding="utf-8")
