// SPDX-License-Identifier: GPL-2.0
/*
 * Exports the Rust symbols of the `rdma` crate that dependent modules refer to. The
 * list is made from their objects at build time.
 */

#include <linux/export.h>

#define EXPORT_SYMBOL_RUST_GPL(sym) \
	extern int sym;             \
	EXPORT_SYMBOL_GPL(sym)

#include "generated.h"
