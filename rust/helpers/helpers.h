/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _RDMA_RS_HELPERS_H
#define _RDMA_RS_HELPERS_H

#include <linux/dma-direction.h>
#include <linux/mm_types.h>
#include <linux/types.h>

struct completion;
struct debugfs_short_fops;
struct dentry;
struct device;
struct ib_block_iter;
struct ib_device;
struct ib_qp;
struct ib_recv_wr;
struct ib_ucontext;
struct ib_udata;
struct ib_umem;
struct in_ifaddr;
struct inet6_dev;
struct neighbour;
struct net;
struct net_device;
struct nlattr;
struct pci_dev;
struct ratelimit_state;
struct sk_buff;

/* Result bit of rdma_rs_neigh_read(): the address in @mac is valid. */
#define RDMA_RS_NEIGH_VALID 0x100

/* Sizes and offsets as the C compiler sees them. */
#define RDMA_RS_LAYOUT_LEN 36
extern const size_t rdma_rs_layout[RDMA_RS_LAYOUT_LEN];

dma_addr_t rdma_rs_block_iter_dma_address(struct ib_block_iter *iter);
struct dentry *rdma_rs_debugfs_dir(const char *name);
void rdma_rs_debugfs_file(const char *name, struct dentry *dir, void *data,
			  const struct debugfs_short_fops *ops);
void rdma_rs_debugfs_order(const char *name, struct dentry *dir, void *data,
			   const struct debugfs_short_fops *ops);
struct dentry *rdma_rs_debugfs_subdir(const char *top, const char *name);
void rdma_rs_dev_hold(struct net_device *dev);
void rdma_rs_dev_put(struct net_device *dev);
bool rdma_rs_device_get(struct ib_device *dev);
u64 rdma_rs_dma_map_single(struct ib_device *dev, void *addr, size_t size,
			   enum dma_data_direction direction);
int rdma_rs_dma_mapping_error(struct ib_device *dev, u64 addr);
void rdma_rs_dma_set_max_seg_size(struct device *dev, unsigned int size);
void rdma_rs_dma_sync_for_cpu(struct ib_device *dev, u64 addr, size_t size,
			      enum dma_data_direction direction);
void rdma_rs_dma_sync_for_device(struct ib_device *dev, u64 addr, size_t size,
				 enum dma_data_direction direction);
void rdma_rs_dma_unmap_single(struct ib_device *dev, u64 addr, size_t size,
			      enum dma_data_direction direction);
struct inet6_dev *rdma_rs_in6_dev_get(struct net_device *dev);
struct in_ifaddr *rdma_rs_in_dev_first(struct net_device *dev);
struct net *rdma_rs_init_net(void);
int rdma_rs_ip_mc_join(struct net_device *dev, __be32 group);
void rdma_rs_ip_mc_leave(struct net_device *dev, __be32 group);
int rdma_rs_is_udata_in_empty(struct ib_udata *udata);
bool rdma_rs_need_resched(void);
unsigned int rdma_rs_neigh_read(struct neighbour *neigh, u8 *key, u8 *mac);
bool rdma_rs_netdev_in_callers_net(struct net_device *dev);
bool rdma_rs_netdev_in_group4(struct net_device *dev, const u8 *group);
bool rdma_rs_netdev_in_group6(struct net_device *dev, const u8 *group);
bool rdma_rs_netdev_link_up(struct net_device *dev);
void rdma_rs_netdev_mac(struct net_device *dev, u8 *mac);
void rdma_rs_nl_cancel(struct sk_buff *msg, struct nlattr *start);
struct nlattr *rdma_rs_nl_driver_start(struct sk_buff *msg);
void rdma_rs_nl_end(struct sk_buff *msg, struct nlattr *start);
unsigned int rdma_rs_num_online_cpus(void);
u64 rdma_rs_pci_bar_len(struct pci_dev *pdev);
u64 rdma_rs_pci_bar_start(struct pci_dev *pdev);
int rdma_rs_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr);
bool rdma_rs_ratelimit(struct ratelimit_state *state, u32 *missed);
void rdma_rs_ratelimit_init(struct ratelimit_state *state);
void rdma_rs_reinit_completion(struct completion *completion);
int rdma_rs_respond_empty_udata(struct ib_udata *udata);
struct ib_ucontext *rdma_rs_udata_to_ucontext(struct ib_udata *udata);
void rdma_rs_umem_block_iter_start(struct ib_block_iter *iter, struct ib_umem *umem,
				   unsigned long page_size);
size_t rdma_rs_umem_num_dma_blocks(struct ib_umem *umem, unsigned long page_size);
struct net_device *rdma_rs_vlan_dev_real_dev(struct net_device *dev);
u16 rdma_rs_vlan_dev_vlan_id(struct net_device *dev);
u16 rdma_rs_vlan_tag(struct net_device *dev);
pgprot_t rdma_rs_vma_prot_noncached(struct vm_area_struct *vma);

#endif /* _RDMA_RS_HELPERS_H */
