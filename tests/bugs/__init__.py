"""Public bugs of brokers and clients, each as a test named after what must hold. Docstrings name the report."""
