/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The virtual card's own view, asked through the program nicctl: what the
 * device holds, whatever the driver believes. There is none on a machine with
 * a physical card or a software device.
 */
#ifndef GUEST_NIC_H
#define GUEST_NIC_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#define NIC_MEMBERS 16

struct nic_group {
	bool present;
	unsigned int members;
	uint32_t qpn[NIC_MEMBERS];
	unsigned char mac[6];
};

/* Whether there is a card to ask. */
bool nic_available(void);

/* How many groups the device holds; negative if it cannot be told. */
int nic_group_count(void);

/*
 * What the device knows of group @gid. If it holds several entries of it their
 * members are added up. Returns 0 or an errno.
 */
int nic_group(const union ibv_gid *gid, struct nic_group *group);

/* The number at .rdma.@object of the device's state; negative if unknown. */
long nic_objects(const char *object);

#endif
