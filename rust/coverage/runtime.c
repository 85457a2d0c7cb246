// SPDX-License-Identifier: GPL-2.0
/*
 * The runtime of a build with coverage counters: the one symbol that such code refers
 * to, so that a linker takes a runtime in. Nothing has to run here; the counters are
 * read out of kernel memory (tests/lab/guest/lab-coverage).
 */

#include <linux/export.h>

int __llvm_profile_runtime;
EXPORT_SYMBOL_GPL(__llvm_profile_runtime);
