"""Every quota of Kafka 4.4, as AlterClientQuotas names them (KIP-546, KIP-612)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.config.setting import DOUBLE, INT, LONG, MEDIUM, Setting, table
from ottla.config.validators import at_least
from ottla.config.values import INT32_MAX, INT64_MAX

USER_AND_CLIENT_QUOTAS: Final[Mapping[str, Setting]] = table(
    [
        Setting("consumer_byte_rate", LONG, INT64_MAX, None, MEDIUM),
        Setting("controller_mutation_rate", DOUBLE, 2147483647.0, None, MEDIUM),
        Setting("producer_byte_rate", LONG, INT64_MAX, None, MEDIUM),
        Setting("request_percentage", DOUBLE, 2147483647.0, None, MEDIUM),
    ]
)
"""What may be limited for a user, a client id, or both."""

IP_QUOTAS: Final[Mapping[str, Setting]] = table(
    [
        Setting("connection_creation_rate", INT, INT32_MAX, at_least(0), MEDIUM),
    ]
)
"""What may be limited for an address."""
