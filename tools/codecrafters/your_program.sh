#!/bin/sh
# The program that the challenge "Build your own Kafka" starts, with the path of a server.properties: a broker, from
# the virtual environment of `make build` or, where that was not built, from the sources.
root=$(dirname "$0")/../..
if [ -x "$root/.venv/bin/ottla" ]; then
	exec "$root/.venv/bin/ottla" serve "$@"
fi
if [ -x "$root/.venv/bin/python" ]; then
	PYTHON=$root/.venv/bin/python
fi
PYTHONPATH=$root/src exec "${PYTHON:-python3}" -m ottla.cli.main serve "$@"
