"""One instance on many brokers on a virtual clock: how well its limit holds under a demand, by strategy.

demand           what clients would send
run figures      a run on a virtual clock, and the five figures it is judged by
report __main__  many runs summed up; the command
"""
