/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The IP groups that this machine is in, which is what it tells switches by IGMP
 * and MLD.
 */
#ifndef GUEST_HOST_H
#define GUEST_HOST_H

#include <infiniband/verbs.h>

/* Joins group @gid on an interface as a socket does, until host_leave(). 0 or an errno. */
int host_join(const union ibv_gid *gid, unsigned int ifindex);
/* Takes back one host_join(); EADDRNOTAVAIL if there was none. */
int host_leave(const union ibv_gid *gid, unsigned int ifindex);
void host_leave_all(void);

/*
 * How many users of this machine are in group @gid on an interface, as the kernel
 * counts them; negative if that cannot be told.
 */
int host_users(const union ibv_gid *gid, unsigned int ifindex);

#endif
