"""The table of served APIs holds together."""

from __future__ import annotations

from ottla.dialects.kafka.router import HANDLERS, Router
from ottla.protocol.apis import API, ApiKey


def test_every_handler_in_the_table_is_there_and_speaks_its_api() -> None:
    """Handlers are named and imported late, so nothing but this would notice a name that is wrong."""
    served = Router().served()

    assert served.keys() == HANDLERS.keys() | {ApiKey.API_VERSIONS}
    assert all(route.request is API[key].request and callable(route.handle) for key, route in served.items())
