"""What our users and we test with: a broker in the test process, a clock that is moved by hand."""
