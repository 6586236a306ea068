"""`bnw testnet`: real nodes on this machine that people, scripts and scenario files play with.

A testnet is a directory: a home for each node, and one file that says which processes are its nodes (`state`). The
nodes are ordinary `bnw run` processes on loopback, each in a session of its own, and outlive the command that started
them. Every command that changes something holds a lock on the directory. So that nothing is ever left running or lying
about, whatever ends whom and when:

- A node is started by a small shell that waits for a word before it becomes the node. The word is given once the
  state file has the process; a starter that is killed earlier never gives it, and the shell ends with its input.
- A process is known by its id and the moment it started (`processes`), so that an id which the system has given to
  somebody else since is never taken for a node and never sent a signal.
- Whatever a broken `up` or `down` has left is found in the state file by the next `up`, which ends and removes it. The
  state file is the last to be removed.

`net` makes, starts and ends nodes, `plan` says how many are possible, and `command` has the commands for people.

`bnw testnet FILE` (`file_command`, `playing`) plays a scenario of the simulator: `world` has real nodes in the place of
simulated ones, `real_node` gives them the calls that the workload makes, `relay` the links between them, `possible`
what of a file they can have, and `watching` tells the simulator's recorder what they do.
"""
