"""`ottla cluster`: brokers, features, and the API versions that are served beside those that this client knows."""

from __future__ import annotations

import click

from ottla.cli.options import bootstrap_option, cluster_settings, examples, json_option
from ottla.cli.output import DONE, print_json, print_line, print_table, run
from ottla.client.admin import Admin, ClusterDescription
from ottla.protocol.apis import API, ApiKey
from ottla.protocol.messages.api_versions import ApiVersionsResponse


@click.command(epilog=examples("ottla cluster", "ottla cluster --versions", "ottla cluster --json"))
@click.option("--versions", "show_versions", is_flag=True, help="Also the versions of every API.")
@json_option
@bootstrap_option
def cluster(show_versions: bool, as_json: bool, bootstrap: str) -> None:
    """Show brokers, features and API versions."""

    async def work() -> int:
        async with Admin(bootstrap, cluster=cluster_settings()) as admin:
            described = await admin.describe_cluster()
            served = await admin.api_versions()
        if as_json:
            print_json(_as_json(described, served))
            return DONE
        print_line(f"cluster {described.cluster_id or '(no id)'}")
        print_table(
            ["broker", "address", "rack", "controller"],
            [
                (broker.node_id, str(broker), broker.rack, "yes" if broker.node_id == described.controller_id else "")
                for broker in described.brokers
            ],
        )
        if served.finalized_features:
            print_table(
                ["feature", "level", "supported"],
                [
                    (name, row["level"], f"{row['min_supported']}-{row['max_supported']}")
                    for name, row in features_json(served).items()
                ],
            )
        if show_versions:
            print_table(
                ["key", "api", "served", "known here"],
                [
                    (row["key"], row["api"], _range(row["served"]), _range(row["known"]))
                    for row in versions_json(served)
                ],
            )
        return DONE

    run(work())


def _as_json(described: ClusterDescription, served: ApiVersionsResponse) -> dict[str, object]:
    return {
        "cluster_id": described.cluster_id,
        "controller_id": described.controller_id if described.controller_id >= 0 else None,
        "brokers": [
            {"node_id": broker.node_id, "host": broker.host, "port": broker.port, "rack": broker.rack}
            for broker in described.brokers
        ],
        "features": features_json(served),
        "versions": versions_json(served),
    }


def features_json(served: ApiVersionsResponse) -> dict[str, dict[str, int | None]]:
    """Return finalized levels and supported ranges by feature."""
    supported = {row.name: row for row in served.supported_features}
    return {
        row.name: {
            "level": row.max_version_level,
            "min_supported": supported[row.name].min_version if row.name in supported else None,
            "max_supported": supported[row.name].max_version if row.name in supported else None,
        }
        for row in sorted(served.finalized_features, key=lambda row: row.name)
    }


def versions_json(served: ApiVersionsResponse) -> list[dict[str, object]]:
    """Return what is served beside what is known here, by API key; None where one side has nothing."""
    ranges: dict[int, list[int]] = {row.api_key: [row.min_version, row.max_version] for row in served.api_keys}
    known: dict[int, list[int]] = {int(key): [api.min_version, api.max_version] for key, api in API.items()}
    return [
        {
            "key": key,
            "api": API[key].name if key in API else None,
            "served": ranges.get(key),
            "known": known.get(key),
        }
        for key in sorted(ranges.keys() | {int(key) for key in ApiKey})
    ]


def _range(pair: object) -> str | None:
    return f"{pair[0]}-{pair[1]}" if isinstance(pair, list) else None
