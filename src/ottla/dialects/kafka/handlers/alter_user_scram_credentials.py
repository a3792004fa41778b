"""AlterUserScramCredentials v0: set and delete what proves users' passwords (KIP-554)."""

from __future__ import annotations

from ottla.broker.metadata.alter_scram_users import (
    CredentialAlteration,
    CredentialDeletion,
    CredentialUpsertion,
    ScramAnswer,
)
from ottla.dialects.kafka.answers import LaterAnswer, RequestContext
from ottla.dialects.kafka.durable import when_durable
from ottla.errors import KafkaError
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)


def handle(
    request: AlterUserScramCredentialsRequest, context: RequestContext
) -> AlterUserScramCredentialsResponse | LaterAnswer:
    alterations = _alterations(request)

    def refuse(error: KafkaError) -> AlterUserScramCredentialsResponse:
        return _response({alteration.name: error for alteration in alterations})

    try:
        committed = context.broker.administration.alter_scram_users(alterations)
    except KafkaError as error:
        return refuse(error)
    return when_durable(committed.ticket, _response(committed.answer), refuse)


def _alterations(request: AlterUserScramCredentialsRequest) -> list[CredentialAlteration]:
    deletions = [CredentialDeletion(asked.name, asked.mechanism) for asked in request.deletions]
    upsertions = [
        CredentialUpsertion(asked.name, asked.mechanism, asked.iterations, asked.salt, asked.salted_password)
        for asked in request.upsertions
    ]
    return [*deletions, *upsertions]


def _response(outcomes: ScramAnswer) -> AlterUserScramCredentialsResponse:
    response = AlterUserScramCredentialsResponse()
    for name, error in outcomes.items():
        response.results.append(
            AlterUserScramCredentialsResult(
                user=name,
                error_code=0 if error is None else error.code,
                error_message=None if error is None else str(error),
            )
        )
    return response
