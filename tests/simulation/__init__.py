"""The whole service in one process, under a virtual clock: `python -m tests.simulation SEED...`.

The engine, the writer, the coordinator, workers, the fence, snapshots and replay are the product's
own, and so are the ways to Kafka, Redis and SQL down to the clients' libraries. Below those is a
world that a seed decides: when what fails, in which order processes run. A seed is a run, the same
each time, and can be made smaller until only the events are left that matter.

How faults are injected and how a run is checked follows FoundationDB's simulation (J. Zhou et al.,
"FoundationDB: a distributed unbundled transactional key value store", SIGMOD 2021, section 4) and
TigerBeetle's VOPR; the question that is asked of every record is Jepsen's.

- ``scheduler``, ``virtual_time``: who runs next, and what the product takes for the machine.
- ``broker``, ``group``, ``consumer``: Kafka, as its logs and groups behave, and kafka-python.
- ``database``, ``sql_faults``: a real SQLite file, and what goes wrong on the way to it.
- ``redis_store``, ``redis_faults``: Redis as its clients see it, running the product's own scripts.
- ``chain``, ``cheap``: kernels and families that cost microseconds and keep the contracts.
- ``scenario``, ``processes``, ``world``: what a seed stands for, and who lives there.
- ``history``, ``checker``: what SQL showed after each commit, and what must hold at the end.
- ``run``: plays a scenario, and shrinks one.
- ``mutants``: whether any of this notices when a line of the product is wrong.
"""
