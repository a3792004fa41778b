"""Wire servers: each dialect turns its bytes into calls on `Broker` and the answers into its bytes."""
