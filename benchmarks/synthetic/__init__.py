"""Pairs of served runs with one known change each, drawn from the step simulator and handed over as an importer would.

deployment   what is served, how, under which load; every part of it is something a change can touch
stream       the simulator's passes, one after another, each disturbed and watched: who got a token when
handing      what a client saw and what its tools report, as a run with request samples
kinds        one function a kind of change: two deployments, and what is known about them
"""
