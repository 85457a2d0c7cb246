// SPDX-License-Identifier: GPL-2.0
/*
 * Inline functions and macros of C headers, as symbols for Rust. One function each,
 * next to no logic of its own, in alphabetical order. They are exported because
 * generic Rust code of this module is compiled into the modules that use it.
 */

/* iidc_rdma_ice.h wants this one before it. */
#include <linux/pci.h>

#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/dcache.h>
#include <linux/debugfs.h>
#include <linux/dma-mapping.h>
#include <linux/export.h>
#include <linux/hash.h>
#include <linux/if_vlan.h>
#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/mm.h>
#include <linux/net/intel/iidc_rdma.h>
#include <linux/net/intel/iidc_rdma_ice.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/ratelimit.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <linux/unaligned.h>
#include <net/addrconf.h>
#include <net/if_inet6.h>
#include <net/neighbour.h>
#include <net/net_namespace.h>
#include <net/netlink.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/iter.h>
#include <rdma/rdma_netlink.h>
#include <rdma/uverbs_ioctl.h>

#include "helpers.h"

/* What rust/bindings/layout.rs compares with, in its order. */
const size_t rdma_rs_layout[RDMA_RS_LAYOUT_LEN] = {
	sizeof(struct ib_ah),
	sizeof(struct ib_block_iter),
	sizeof(struct ib_client),
	sizeof(struct ib_cq),
	offsetof(struct ib_cq, cq_context),
	sizeof(struct ib_device),
	offsetof(struct ib_device, attrs),
	offsetof(struct ib_device, dev),
	offsetof(struct ib_device, name),
	offsetof(struct ib_device, phys_port_cnt),
	sizeof(struct ib_device_attr),
	sizeof(struct ib_device_ops),
	offsetof(struct ib_device_ops, size_ib_qp),
	sizeof(struct ib_gid_attr),
	sizeof(struct ib_mr),
	sizeof(struct ib_pd),
	sizeof(struct ib_port_attr),
	sizeof(struct ib_qp),
	sizeof(struct ib_qp_attr),
	sizeof(struct ib_qp_init_attr),
	sizeof(struct ib_recv_wr),
	sizeof(struct ib_ucontext),
	sizeof(struct ib_ud_wr),
	sizeof(struct ib_umem),
	sizeof(struct ib_wc),
	sizeof(struct iidc_rdma_core_auxiliary_dev),
	sizeof(struct iidc_rdma_core_auxiliary_drv),
	sizeof(struct iidc_rdma_priv_dev_info),
	offsetof(struct in_ifaddr, ifa_local),
	offsetof(struct inet6_ifaddr, if_list),
	offsetof(struct neighbour, dev),
	sizeof(struct net_device),
	offsetof(struct net_device, mtu),
	sizeof(struct rdma_ah_attr),
	sizeof(struct rdma_user_mmap_entry),
	sizeof(struct uverbs_attr_bundle),
};

dma_addr_t rdma_rs_block_iter_dma_address(struct ib_block_iter *iter)
{
	return rdma_block_iter_dma_address(iter);
}
EXPORT_SYMBOL_GPL(rdma_rs_block_iter_dma_address);

struct dentry *rdma_rs_debugfs_dir(const char *name)
{
	return debugfs_create_dir(name, NULL);
}
EXPORT_SYMBOL_GPL(rdma_rs_debugfs_dir);

void rdma_rs_debugfs_file(const char *name, struct dentry *dir, void *data,
			  const struct debugfs_short_fops *ops)
{
	/* World-readable ones, below a directory of root's, can be read under lockdown, too. */
	debugfs_create_file(name, 0444, dir, data, ops);
}
EXPORT_SYMBOL_GPL(rdma_rs_debugfs_file);

/* The same for a file that root writes orders to. */
void rdma_rs_debugfs_order(const char *name, struct dentry *dir, void *data,
			   const struct debugfs_short_fops *ops)
{
	debugfs_create_file(name, 0200, dir, data, ops);
}
EXPORT_SYMBOL_GPL(rdma_rs_debugfs_order);

/* A directory in the one at the top that is called @top, if there is one. */
struct dentry *rdma_rs_debugfs_subdir(const char *top, const char *name)
{
	struct dentry *parent = debugfs_lookup(top, NULL);
	struct dentry *dir;

	if (IS_ERR_OR_NULL(parent))
		return ERR_PTR(-ENOENT);

	dir = debugfs_create_dir(name, parent);
	dput(parent);
	return dir;
}
EXPORT_SYMBOL_GPL(rdma_rs_debugfs_subdir);

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

/* The caller holds a count, so there is one to take. */
bool rdma_rs_device_get(struct ib_device *dev)
{
	return ib_device_try_get(dev);
}
EXPORT_SYMBOL_GPL(rdma_rs_device_get);

u64 rdma_rs_dma_map_single(struct ib_device *dev, void *addr, size_t size,
			   enum dma_data_direction direction)
{
	return ib_dma_map_single(dev, addr, size, direction);
}
EXPORT_SYMBOL_GPL(rdma_rs_dma_map_single);

int rdma_rs_dma_mapping_error(struct ib_device *dev, u64 addr)
{
	return ib_dma_mapping_error(dev, addr);
}
EXPORT_SYMBOL_GPL(rdma_rs_dma_mapping_error);

void rdma_rs_dma_set_max_seg_size(struct device *dev, unsigned int size)
{
	dma_set_max_seg_size(dev, size);
}
EXPORT_SYMBOL_GPL(rdma_rs_dma_set_max_seg_size);

void rdma_rs_dma_sync_for_cpu(struct ib_device *dev, u64 addr, size_t size,
			      enum dma_data_direction direction)
{
	ib_dma_sync_single_for_cpu(dev, addr, size, direction);
}
EXPORT_SYMBOL_GPL(rdma_rs_dma_sync_for_cpu);

void rdma_rs_dma_sync_for_device(struct ib_device *dev, u64 addr, size_t size,
				 enum dma_data_direction direction)
{
	ib_dma_sync_single_for_device(dev, addr, size, direction);
}
EXPORT_SYMBOL_GPL(rdma_rs_dma_sync_for_device);

void rdma_rs_dma_unmap_single(struct ib_device *dev, u64 addr, size_t size,
			      enum dma_data_direction direction)
{
	ib_dma_unmap_single(dev, addr, size, direction);
}
EXPORT_SYMBOL_GPL(rdma_rs_dma_unmap_single);

struct inet6_dev *rdma_rs_in6_dev_get(struct net_device *dev)
{
	return __in6_dev_get(dev);
}
EXPORT_SYMBOL_GPL(rdma_rs_in6_dev_get);

struct in_ifaddr *rdma_rs_in_dev_first(struct net_device *dev)
{
	struct in_device *in_dev = __in_dev_get_rcu(dev);

	return in_dev ? rcu_dereference(in_dev->ifa_list) : NULL;
}
EXPORT_SYMBOL_GPL(rdma_rs_in_dev_first);

struct net *rdma_rs_init_net(void)
{
	return &init_net;
}
EXPORT_SYMBOL_GPL(rdma_rs_init_net);

/* Makes @dev a member of an IPv4 group. Takes RTNL. -ENODEV if IPv4 is off on @dev. */
int rdma_rs_ip_mc_join(struct net_device *dev, __be32 group)
{
	struct in_device *in_dev;

	rtnl_lock();
	in_dev = __in_dev_get_rtnl(dev);
	if (in_dev)
		ip_mc_inc_group(in_dev, group);
	rtnl_unlock();
	return in_dev ? 0 : -ENODEV;
}
EXPORT_SYMBOL_GPL(rdma_rs_ip_mc_join);

/* Undoes one rdma_rs_ip_mc_join(). Takes RTNL. */
void rdma_rs_ip_mc_leave(struct net_device *dev, __be32 group)
{
	struct in_device *in_dev;

	rtnl_lock();
	in_dev = __in_dev_get_rtnl(dev);
	if (in_dev)
		ip_mc_dec_group(in_dev, group);
	rtnl_unlock();
}
EXPORT_SYMBOL_GPL(rdma_rs_ip_mc_leave);

int rdma_rs_is_udata_in_empty(struct ib_udata *udata)
{
	return ib_is_udata_in_empty(udata);
}
EXPORT_SYMBOL_GPL(rdma_rs_is_udata_in_empty);

bool rdma_rs_need_resched(void)
{
	return need_resched();
}
EXPORT_SYMBOL_GPL(rdma_rs_need_resched);

/*
 * Copies the key, and the MAC address if it is valid. Returns the length of the key,
 * with RDMA_RS_NEIGH_VALID for a valid address, or 0 for a key of more than 16 octets
 * or a link that is not Ethernet.
 */
unsigned int rdma_rs_neigh_read(struct neighbour *neigh, u8 *key, u8 *mac)
{
	unsigned int len = neigh->tbl->key_len;
	char ha[MAX_ADDR_LEN];

	if (len > sizeof(struct in6_addr) || neigh->dev->addr_len != ETH_ALEN)
		return 0;

	memcpy(key, neigh->primary_key, len);
	if (!(READ_ONCE(neigh->nud_state) & NUD_VALID))
		return len;

	neigh_ha_snapshot(ha, neigh, neigh->dev);
	memcpy(mac, ha, ETH_ALEN);
	return len | RDMA_RS_NEIGH_VALID;
}
EXPORT_SYMBOL_GPL(rdma_rs_neigh_read);

bool rdma_rs_netdev_in_callers_net(struct net_device *dev)
{
	/* None in a process that is ending. */
	return current->nsproxy && net_eq(dev_net(dev), current->nsproxy->net_ns);
}
EXPORT_SYMBOL_GPL(rdma_rs_netdev_in_callers_net);

/* Whether somebody joined the group of four octets on @dev. RCU read section. */
bool rdma_rs_netdev_in_group4(struct net_device *dev, const u8 *group)
{
	__be32 address = get_unaligned((const __be32 *)group);
	struct in_device *in_dev = __in_dev_get_rcu(dev);
	struct ip_mc_list __rcu **hash;
	struct ip_mc_list *im;

	if (!in_dev)
		return false;

	/* The stack hashes them as soon as there are more than a few. */
	hash = rcu_dereference(in_dev->mc_hash);
	if (hash) {
		u32 bucket = hash_32((__force u32)address, MC_HASH_SZ_LOG);

		im = rcu_dereference(hash[bucket]);
		while (im && im->multiaddr != address)
			im = rcu_dereference(im->next_hash);
	} else {
		im = rcu_dereference(in_dev->mc_list);
		while (im && im->multiaddr != address)
			im = rcu_dereference(im->next_rcu);
	}
	return im;
}
EXPORT_SYMBOL_GPL(rdma_rs_netdev_in_group4);

/* Whether somebody joined the group of sixteen octets on @dev. RCU read section. */
bool rdma_rs_netdev_in_group6(struct net_device *dev, const u8 *group)
{
	struct inet6_dev *idev = __in6_dev_get(dev);
	struct ifmcaddr6 *mc;

	if (!idev)
		return false;

	mc = rcu_dereference(idev->mc_list);
	while (mc && memcmp(&mc->mca_addr, group, sizeof(mc->mca_addr)))
		mc = rcu_dereference(mc->next);
	return mc;
}
EXPORT_SYMBOL_GPL(rdma_rs_netdev_in_group6);

bool rdma_rs_netdev_link_up(struct net_device *dev)
{
	return netif_running(dev) && netif_carrier_ok(dev);
}
EXPORT_SYMBOL_GPL(rdma_rs_netdev_link_up);

void rdma_rs_netdev_mac(struct net_device *dev, u8 *mac)
{
	ether_addr_copy(mac, dev->dev_addr);
}
EXPORT_SYMBOL_GPL(rdma_rs_netdev_mac);

void rdma_rs_nl_cancel(struct sk_buff *msg, struct nlattr *start)
{
	nla_nest_cancel(msg, start);
}
EXPORT_SYMBOL_GPL(rdma_rs_nl_cancel);

struct nlattr *rdma_rs_nl_driver_start(struct sk_buff *msg)
{
	return nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
}
EXPORT_SYMBOL_GPL(rdma_rs_nl_driver_start);

void rdma_rs_nl_end(struct sk_buff *msg, struct nlattr *start)
{
	nla_nest_end(msg, start);
}
EXPORT_SYMBOL_GPL(rdma_rs_nl_end);

unsigned int rdma_rs_num_online_cpus(void)
{
	return num_online_cpus();
}
EXPORT_SYMBOL_GPL(rdma_rs_num_online_cpus);

u64 rdma_rs_pci_bar_len(struct pci_dev *pdev)
{
	return pci_resource_len(pdev, 0);
}
EXPORT_SYMBOL_GPL(rdma_rs_pci_bar_len);

u64 rdma_rs_pci_bar_start(struct pci_dev *pdev)
{
	return pci_resource_start(pdev, 0);
}
EXPORT_SYMBOL_GPL(rdma_rs_pci_bar_start);

int rdma_rs_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr)
{
	return ib_post_recv(qp, wr, NULL);
}
EXPORT_SYMBOL_GPL(rdma_rs_post_recv);

/* Whether a message may be printed, and if so, how many were not since the last one. */
bool rdma_rs_ratelimit(struct ratelimit_state *state, u32 *missed)
{
	if (!__ratelimit(state))
		return false;

	*missed = ratelimit_state_reset_miss(state);
	return true;
}
EXPORT_SYMBOL_GPL(rdma_rs_ratelimit);

void rdma_rs_ratelimit_init(struct ratelimit_state *state)
{
	ratelimit_default_init(state);
	/* The caller tells of what was left out. */
	ratelimit_set_flags(state, RATELIMIT_MSG_ON_RELEASE);
}
EXPORT_SYMBOL_GPL(rdma_rs_ratelimit_init);

void rdma_rs_reinit_completion(struct completion *completion)
{
	reinit_completion(completion);
}
EXPORT_SYMBOL_GPL(rdma_rs_reinit_completion);

int rdma_rs_respond_empty_udata(struct ib_udata *udata)
{
	return ib_respond_empty_udata(udata);
}
EXPORT_SYMBOL_GPL(rdma_rs_respond_empty_udata);

struct ib_ucontext *rdma_rs_udata_to_ucontext(struct ib_udata *udata)
{
	return rdma_udata_to_uverbs_attr_bundle(udata)->context;
}
EXPORT_SYMBOL_GPL(rdma_rs_udata_to_ucontext);

void rdma_rs_umem_block_iter_start(struct ib_block_iter *iter, struct ib_umem *umem,
				   unsigned long page_size)
{
	__rdma_umem_block_iter_start(iter, umem, page_size);
}
EXPORT_SYMBOL_GPL(rdma_rs_umem_block_iter_start);

size_t rdma_rs_umem_num_dma_blocks(struct ib_umem *umem, unsigned long page_size)
{
	return ib_umem_num_dma_blocks(umem, page_size);
}
EXPORT_SYMBOL_GPL(rdma_rs_umem_num_dma_blocks);

struct net_device *rdma_rs_vlan_dev_real_dev(struct net_device *dev)
{
	return rdma_vlan_dev_real_dev(dev);
}
EXPORT_SYMBOL_GPL(rdma_rs_vlan_dev_real_dev);

u16 rdma_rs_vlan_dev_vlan_id(struct net_device *dev)
{
	return rdma_vlan_dev_vlan_id(dev);
}
EXPORT_SYMBOL_GPL(rdma_rs_vlan_dev_vlan_id);

/*
 * The 802.1Q tag that frames of @dev bear, or 0xffff if they bear none, a tag of
 * another kind, or several.
 */
u16 rdma_rs_vlan_tag(struct net_device *dev)
{
	if (!is_vlan_dev(dev) || vlan_dev_vlan_proto(dev) != htons(ETH_P_8021Q) ||
	    is_vlan_dev(vlan_dev_priv(dev)->real_dev))
		return 0xffff;

	return vlan_dev_vlan_id(dev);
}
EXPORT_SYMBOL_GPL(rdma_rs_vlan_tag);

pgprot_t rdma_rs_vma_prot_noncached(struct vm_area_struct *vma)
{
	return pgprot_noncached(vma->vm_page_prot);
}
EXPORT_SYMBOL_GPL(rdma_rs_vma_prot_noncached);
