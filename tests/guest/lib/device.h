/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The RDMA device under test and its addresses.
 */
#ifndef GUEST_DEVICE_H
#define GUEST_DEVICE_H

#include <stdbool.h>
#include <infiniband/verbs.h>

/* Every program here uses the first port. */
#define PORT 1

enum family {
	IPV4 = 4,
	IPV6 = 6,
};

struct device {
	struct ibv_context *context;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	char name[64];
	const char *netdev;	/* whose addresses are used; NULL: of any interface */
};

/*
 * Opens device @name; NULL means the one in $RDMA_DEV, else the only one.
 * Returns 0, or an errno after saying on stderr what failed.
 */
int device_open(struct device *device, const char *name);
void device_close(struct device *device);

/*
 * Fills in @device for a context that somebody else opened, and closes. Returns 0,
 * or an errno after saying on stderr what failed.
 */
int device_adopt(struct device *device, struct ibv_context *context);

/*
 * Finds the RoCEv2 GID of @family on the port, on interface @device->netdev if it
 * is set: its index and value. Of IPv6 addresses a global one is taken before a
 * link-local one.
 */
int device_gid(const struct device *device, enum family family,
	       union ibv_gid *gid, int *index);

/* As device_gid(), of the addresses of network interface @netdev alone. */
int device_gid_on(const struct device *device, enum family family,
		  const char *netdev, union ibv_gid *gid, int *index);

/* Finds the index of RoCEv2 GID @gid; EADDRNOTAVAIL if the port does not have it. */
int device_gid_index(const struct device *device, const union ibv_gid *gid,
		     int *index);

/* The network interface of GID @index; 0 if there is none. */
unsigned int device_ifindex(const struct device *device, int index);

/* Bytes of UD payload that one packet carries on this port. */
unsigned int device_mtu(const struct device *device);

/* "239.1.2.3" (as ::ffff:239.1.2.3) or "ff0e::1" to a GID; false if neither. */
bool gid_parse(const char *text, union ibv_gid *gid);

/* The family whose addresses a GID carries. */
enum family gid_family(const union ibv_gid *gid);

/* The address as text, in a buffer good for the next few calls. */
const char *gid_text(const union ibv_gid *gid);

/* The Ethernet address the standards give a multicast GID (RFC 1112, 2464). */
void gid_multicast_mac(const union ibv_gid *gid, unsigned char mac[6]);

/* An Ethernet address as text, in @text, which is given back. */
#define MAC_TEXT 18
const char *mac_text(const unsigned char mac[6], char text[MAC_TEXT]);

#endif
