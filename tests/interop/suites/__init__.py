"""Other clients' own test suites against a broker under test, held to what they come out with on Apache Kafka.

A suite is fetched by `make` into `.cache/` and runs as its authors wrote it. What passes and fails on Kafka 4.4 stands
in a file beside the test, an outcome and a name a line. On Ottla the same must come out. `make suites` runs both; with
`OTTLA_RECORD_SUITES=1` what comes out is written down instead.
"""
