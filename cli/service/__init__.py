"""A running stream: settings become objects, wired together.

- ``allocation``: large arrays that are freed go back to the system at once.
- ``embedded``: servers out of wheels, for a first look without installing any: a Kafka broker and
  a Redis.
- ``kernels``: compiling what a stream needs, on two processors where there are two.
- ``live_metrics``: what a Weald that is running here tells of a stream through its metrics.
- ``logs``: what a service says on standard error: lines for people, or JSON for programs.
- ``machine_memory``: how much memory there is for this process: the machine's, or the container's.
- ``refinement_plane``: what is known of a stream's refinement plane: its workers by Redis, its
  leases by SQL.
- ``service``: the composition root of a running stream: settings become objects, wired together.
- ``signals``: SIGTERM and Ctrl-C: finish what is in hand, then leave.
- ``warm_up``: what a stream without any state is doing: a new one keeps its first observations in
  memory.
"""
