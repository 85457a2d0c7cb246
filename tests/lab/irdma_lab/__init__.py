# SPDX-License-Identifier: GPL-2.0
"""The lab: boots guests with a virtual E810 each on one fabric and runs a command.

`cli` reads the command line, `session` runs guests and rack together, `guest`
is one virtual machine, `rack` the process with the virtual hardware, `barrier`
the meeting points of `lab-sync`, `klog` the judge of kernel logs, `console`
the terminal of `lab shell`, `rundir` the directories of a run, `process` child
processes that never outlive the lab.
"""
