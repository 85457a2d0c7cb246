// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

static const unsigned char mapped_prefix[12] = {
	[10] = 0xff, [11] = 0xff,
};

int device_adopt(struct device *device, struct ibv_context *context)
{
	int err;

	device->context = context;
	snprintf(device->name, sizeof(device->name), "%s",
		 ibv_get_device_name(context->device));
	err = ibv_query_device(context, &device->attr);
	if (!err)
		err = ibv_query_port(context, PORT, &device->port);
	if (err)
		fprintf(stderr, "query device %s: %s\n", device->name,
			strerror(err));
	return err;
}

int device_open(struct device *device, const char *name)
{
	struct ibv_device **list;
	int count, i, err = ENODEV;

	memset(device, 0, sizeof(*device));
	if (!name)
		name = getenv("RDMA_DEV");

	list = ibv_get_device_list(&count);
	if (!list) {
		err = errno;
		fprintf(stderr, "list RDMA devices: %s\n", strerror(err));
		return err;
	}
	if (!name && count > 1) {
		fprintf(stderr, "open device: %d devices, choose one with --device\n",
			count);
		goto out;
	}
	for (i = 0; i < count; i++) {
		if (name && strcmp(ibv_get_device_name(list[i]), name))
			continue;
		device->context = ibv_open_device(list[i]);
		err = device->context ? 0 : errno;
		break;
	}
	if (err) {
		fprintf(stderr, "open device %s: %s\n", name ? name : "(any)",
			strerror(err));
		goto out;
	}

	err = device_adopt(device, device->context);
	if (err)
		device_close(device);
out:
	ibv_free_device_list(list);
	return err;
}

void device_close(struct device *device)
{
	if (device->context)
		ibv_close_device(device->context);
	device->context = NULL;
}

static bool is_link_local(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

/* @ifindex is 0 for any interface. */
static int find_gid(const struct device *device, enum family family,
		    unsigned int ifindex, union ibv_gid *gid, int *index)
{
	bool found = false;
	int i;

	for (i = 0; i < device->port.gid_tbl_len; i++) {
		struct ibv_gid_entry entry;

		/* Holes in the table answer ENODATA. */
		if (ibv_query_gid_ex(device->context, PORT, i, &entry, 0))
			continue;
		if (entry.gid_type != IBV_GID_TYPE_ROCE_V2 ||
		    gid_family(&entry.gid) != family)
			continue;
		if (ifindex && entry.ndev_ifindex != ifindex)
			continue;
		if (found && is_link_local(&entry.gid))
			continue;
		found = true;
		*gid = entry.gid;
		*index = i;
		if (!is_link_local(gid))
			break;
	}
	return found ? 0 : EADDRNOTAVAIL;
}

int device_gid(const struct device *device, enum family family,
	       union ibv_gid *gid, int *index)
{
	int err;

	if (device->netdev)
		return device_gid_on(device, family, device->netdev, gid,
				     index);
	err = find_gid(device, family, 0, gid, index);
	if (err)
		fprintf(stderr, "find GID on %s: no RoCEv2 GID of IPv%d\n",
			device->name, family);
	return err;
}

int device_gid_on(const struct device *device, enum family family,
		  const char *netdev, union ibv_gid *gid, int *index)
{
	unsigned int ifindex = if_nametoindex(netdev);
	int err = ifindex ? find_gid(device, family, ifindex, gid, index) :
			    errno;

	if (err)
		fprintf(stderr, "find GID on %s: IPv%d on interface %s: %s\n",
			device->name, family, netdev, strerror(err));
	return err;
}

int device_gid_index(const struct device *device, const union ibv_gid *gid,
		     int *index)
{
	struct ibv_gid_entry entry;
	int i;

	for (i = 0; i < device->port.gid_tbl_len; i++) {
		if (ibv_query_gid_ex(device->context, PORT, i, &entry, 0) ||
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2 ||
		    memcmp(&entry.gid, gid, sizeof(*gid)))
			continue;
		*index = i;
		return 0;
	}
	return EADDRNOTAVAIL;
}

unsigned int device_ifindex(const struct device *device, int index)
{
	struct ibv_gid_entry entry;

	return ibv_query_gid_ex(device->context, PORT, index, &entry, 0) ?
		       0 : entry.ndev_ifindex;
}

unsigned int device_mtu(const struct device *device)
{
	return 128u << device->port.active_mtu;
}

bool gid_parse(const char *text, union ibv_gid *gid)
{
	memcpy(gid->raw, mapped_prefix, sizeof(mapped_prefix));
	if (inet_pton(AF_INET, text, &gid->raw[12]) == 1)
		return true;
	return inet_pton(AF_INET6, text, gid->raw) == 1;
}

enum family gid_family(const union ibv_gid *gid)
{
	return memcmp(gid->raw, mapped_prefix, sizeof(mapped_prefix)) ? IPV6 :
									IPV4;
}

const char *gid_text(const union ibv_gid *gid)
{
	static char text[4][INET6_ADDRSTRLEN];
	static unsigned int next;
	char *out = text[next++ % 4];

	if (gid_family(gid) == IPV4)
		inet_ntop(AF_INET, &gid->raw[12], out, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, gid->raw, out, INET6_ADDRSTRLEN);
	return out;
}

void gid_multicast_mac(const union ibv_gid *gid, unsigned char mac[6])
{
	if (gid_family(gid) == IPV4) {
		mac[0] = 0x01;
		mac[1] = 0x00;
		mac[2] = 0x5e;
		mac[3] = gid->raw[13] & 0x7f;
		mac[4] = gid->raw[14];
		mac[5] = gid->raw[15];
	} else {
		mac[0] = 0x33;
		mac[1] = 0x33;
		memcpy(&mac[2], &gid->raw[12], 4);
	}
}

const char *mac_text(const unsigned char mac[6], char text[MAC_TEXT])
{
	snprintf(text, MAC_TEXT, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0],
		 mac[1], mac[2], mac[3], mac[4], mac[5]);
	return text;
}
