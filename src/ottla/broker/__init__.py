"""What a broker knows and decides, in the domain's words: no versions, no wire codes, no sockets."""
