// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device.h"
#include "host.h"

#define JOINS 64

/* A socket for each join: the kernel limits how many groups one may be in. */
static struct join {
	union ibv_gid gid;
	unsigned int ifindex;
	int socket;
} joins[JOINS];
static unsigned int joined;

static int ask(int fd, const union ibv_gid *gid, unsigned int ifindex)
{
	struct ip_mreqn ip = { .imr_ifindex = (int)ifindex };
	struct ipv6_mreq ip6 = { .ipv6mr_interface = ifindex };

	if (gid_family(gid) == IPV4) {
		memcpy(&ip.imr_multiaddr, &gid->raw[12], 4);
		return setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &ip,
				  sizeof(ip));
	}
	memcpy(&ip6.ipv6mr_multiaddr, gid->raw, 16);
	return setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &ip6, sizeof(ip6));
}

int host_join(const union ibv_gid *gid, unsigned int ifindex)
{
	int family = gid_family(gid) == IPV4 ? AF_INET : AF_INET6;
	int fd, err;

	if (joined == JOINS)
		return ENOSPC;
	fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	if (ask(fd, gid, ifindex)) {
		err = errno;
		close(fd);
		return err;
	}
	joins[joined++] = (struct join){ *gid, ifindex, fd };
	return 0;
}

int host_leave(const union ibv_gid *gid, unsigned int ifindex)
{
	unsigned int i;

	for (i = 0; i < joined; i++) {
		if (joins[i].ifindex != ifindex ||
		    memcmp(&joins[i].gid, gid, sizeof(*gid)))
			continue;
		close(joins[i].socket);
		joins[i] = joins[--joined];
		return 0;
	}
	return EADDRNOTAVAIL;
}

void host_leave_all(void)
{
	while (joined)
		close(joins[--joined].socket);
}

/* /proc/net/igmp: a line an interface, then one a group, which starts with a blank. */
static int users4(FILE *file, const union ibv_gid *gid, unsigned int ifindex)
{
	unsigned int here = 0, group, wanted;
	char line[256];
	int users;

	memcpy(&wanted, &gid->raw[12], sizeof(wanted));
	while (fgets(line, sizeof(line), file)) {
		if (line[0] != '\t') {
			here = (unsigned int)strtoul(line, NULL, 10);
		} else if (here == ifindex &&
			   sscanf(line, "%x %d", &group, &users) == 2 &&
			   group == wanted) {
			return users;
		}
	}
	return 0;
}

/* /proc/net/igmp6: a line a group. */
static int users6(FILE *file, const union ibv_gid *gid, unsigned int ifindex)
{
	char line[256], group[33], wanted[33];
	unsigned int here, i;
	int users;

	for (i = 0; i < sizeof(gid->raw); i++)
		snprintf(&wanted[2 * i], 3, "%02x", gid->raw[i]);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%u %*s %32s %d", &here, group, &users) == 3 &&
		    here == ifindex && !strcmp(group, wanted))
			return users;
	return 0;
}

int host_users(const union ibv_gid *gid, unsigned int ifindex)
{
	bool ip4 = gid_family(gid) == IPV4;
	FILE *file = fopen(ip4 ? "/proc/net/igmp" : "/proc/net/igmp6", "r");
	int users;

	if (!file)
		return -errno;
	users = ip4 ? users4(file, gid, ifindex) : users6(file, gid, ifindex);
	fclose(file);
	return users;
}
