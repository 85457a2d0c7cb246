/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _RDMA_RS_HELPERS_H
#define _RDMA_RS_HELPERS_H

struct net_device;

void rdma_rs_dev_hold(struct net_device *dev);
void rdma_rs_dev_put(struct net_device *dev);

#endif /* _RDMA_RS_HELPERS_H */
