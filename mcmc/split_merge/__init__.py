"""Split-merge moves, one published sampler a file, of mixtures, networks and entities alike.

- ``dm``: random-split merge with a Dirichlet-multinomial split: Chang and Fisher (2013), section
  5.5.
- ``proposal``: what every split-merge kernel shares: anchors, posterior ratios, decision,
  bookkeeping.
- ``rgsm``: restricted Gibbs split-merge: Jain and Neal (2004), algorithm 2, with its (t, m, g).
- ``rm``: random mixing: the baseline of Wang and Russell (2015), section 5.1.
- ``rsm``: simple random split-merge: Jain and Neal (2004), algorithm 1.
- ``sams``: sequentially allocated merge-split: Dahl (2003).
- ``sams_near``: sequentially allocated merge-split between neighbours.
- ``sdds``: smart-dumb, dumb-smart split-merge: Wang and Russell (2015), sections 3 and 4.
- ``selection``: smart choices of what to split and what to merge: Wang and Russell (2015),
  equations 2 to 6.
- ``ss``: smart split with smart merge: the baseline "SS" of Wang and Russell (2015), section 5.1.
- ``trial_split``: what a split-merge move asks of a state, and the two sides of a division that it
  tries.
"""
