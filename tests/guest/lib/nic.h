/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The virtual card's own view, asked over the channel that the program nicctl
 * uses as well: what the device holds, whatever the driver believes. There is
 * none on a machine with a physical card or a software device. One thread of a
 * process asks at a time.
 */
#ifndef GUEST_NIC_H
#define GUEST_NIC_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#define NIC_MEMBERS 16

struct nic_group {
	bool present;
	unsigned int entries;	/* more than one is a fault of the driver's */
	unsigned int members;
	uint32_t qpn[NIC_MEMBERS];
	unsigned char mac[6];
};

/* Whether there is a card to ask. */
bool nic_available(void);

/* How many groups the device holds; negative if it cannot be told. */
int nic_group_count(void);

/* How many groups have exactly @members members; negative if it cannot be told. */
int nic_groups_with(unsigned int members);

/*
 * What the device knows of group @gid. If it holds several entries of it their
 * members are added up. Returns 0 or an errno.
 */
int nic_group(const union ibv_gid *gid, struct nic_group *group);

/*
 * Waits until the switch, if there is one that listens to IGMP and MLD, sends group
 * @gid to our port on some VLAN, or does not if @here is false. Returns 0, or
 * ETIMEDOUT if that has not come in the seconds that a report may take.
 */
int nic_await_group(const union ibv_gid *gid, bool here);

/* The number at .rdma.@object of the device's state; negative if unknown. */
long nic_objects(const char *object);

/* The number at @path, names with dots, of the answer to @command; or negative. */
long nic_number(const char *command, const char *path);

/* How many control operations @op were done; negative if it cannot be told. */
long nic_operations(const char *op);

/*
 * Has the next control operation @op meet @action: "fail", "swallow" or "delay".
 * Returns 0 or an errno.
 */
int nic_fault(const char *op, const char *action);

/* The same for each @every-th of the next ones, @count in all. */
int nic_faults(const char *op, unsigned int every, unsigned int count,
	       const char *action);

/* Takes all faults back, and lets what is delayed go. */
int nic_faults_clear(void);

/* Lets what is delayed go. */
int nic_release(void);

#endif
