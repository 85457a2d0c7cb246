/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Headers whose declarations the `rdma` crate wraps.
 */

/* iidc_rdma_ice.h wants this one before it. */
#include <linux/pci.h>

#include <linux/hrtimer_types.h>
#include <linux/inetdevice.h>
#include <linux/net/intel/iidc_rdma.h>
#include <linux/net/intel/iidc_rdma_ice.h>
#include <linux/netdevice.h>
#include <linux/notifier.h>
#include <net/addrconf.h>
#include <net/if_inet6.h>
#include <net/neighbour.h>
#include <net/netevent.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/iter.h>
#include <rdma/iw_cm.h>
#include <rdma/uverbs_ioctl.h>
#include <uapi/rdma/irdma-abi.h>

#include "../helpers/helpers.h"

#if IS_BUILTIN(CONFIG_KUNIT)
#include "../testing/words.h"
#endif
