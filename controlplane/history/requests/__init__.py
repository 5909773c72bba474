"""Requests, errors and latencies of instances over time, from the windows of ten seconds that brokers count in.

by_broker    what an instance asked of each of its brokers (pure)
figures      what a step of time has of them, and what metrics of the history that makes (pure)
sampling     windows from the masters to rows: samples, and minutes, hours and days of them
reading      counts by step
selectors    requests of an instance in some steps, by API and error
brokers      what was asked of a broker in some steps, by an instance or by all
topics       what a topic moved in some steps
"""
