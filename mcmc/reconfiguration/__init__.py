"""Adaptive reconfiguration: moves informed by two reference partitions.

- ``accord``: moving whole what two guides agree on: sets of atoms that are together in both, by
  Gibbs.
- ``arm``: adaptive reconfiguration moves: Herlau, Mørup, Schmidt and Teh, algorithm 3.
- ``bsm``: split-merge with an informed launch: bSM of Herlau, Mørup, Schmidt and Teh, section
  3.6.2.
- ``guided``: how a sampler that takes reference partitions becomes a kernel, of mixtures or of
  networks.
- ``reconfiguration``: one reconfiguration: what ``arm``, ``sarm`` and ``srm`` share.
- ``reference_partitions``: two guide partitions, where they disagree, and what they have in
  common.
- ``sarm``: simplified adaptive reconfiguration: Herlau, Mørup, Schmidt and Teh, section 3.6.2.
- ``srm``: simplified reconfiguration moves: Herlau, Mørup, Schmidt and Teh, algorithm 2.
"""
