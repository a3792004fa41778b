"""The lite dialect: a broker's protocol in five requests, small enough to be read in one sitting.

Read `codec` (bytes to requests), then `handlers` (requests to the broker), then `session` (the conversation).
"""
