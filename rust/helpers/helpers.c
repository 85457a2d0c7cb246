// SPDX-License-Identifier: GPL-2.0
/*
 * Inline functions and macros of C headers, as symbols for Rust. One function each,
 * without logic of its own. They are exported because generic Rust code of this
 * module is compiled into the modules that use it.
 */

#include <linux/export.h>
#include <linux/netdevice.h>
#include <rdma/ib_verbs.h>
#include <rdma/iter.h>

#include "helpers.h"

void rdma_rs_dev_hold(struct net_device *dev)
{
	dev_hold(dev);
}
EXPORT_SYMBOL_GPL(rdma_rs_dev_hold);

void rdma_rs_dev_put(struct net_device *dev)
{
	dev_put(dev);
}
EXPORT_SYMBOL_GPL(rdma_rs_dev_put);
