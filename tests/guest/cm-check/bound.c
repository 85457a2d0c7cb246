// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"

/* "The rdma_cm_id must be bound." @arg: 0 join, 1 _ex, 2 _ex send-only. */
enum verdict case_unbound(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group = check_group(check, OTHER);
	struct member *member;
	enum verdict verdict = step_open(check, &member);
	int err;

	if (verdict != PASS)
		return verdict;
	if (!arg)
		err = member_join(member, &group, NULL);
	else
		err = member_join_as(member, &group, arg == 1 ?
				     RDMA_MC_JOIN_FLAG_FULLMEMBER :
				     RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, NULL);
	return bench_errno("join with an identifier that is not bound", err,
			   EINVAL);
}

/* Joins with an identifier that member_resolve() has bound. */
static enum verdict join_resolved(struct check *check, struct member *member,
				  const union ibv_gid *group)
{
	enum verdict verdict = step_queue_pair(check, member);

	if (verdict == PASS)
		verdict = step_join(member, group);
	if (verdict == PASS)
		verdict = step_full(check, group, member);
	if (verdict == PASS)
		verdict = step_deliver(check, group, member, 1);
	if (verdict == PASS)
		verdict = step_leave(member, group);
	return verdict == PASS ? step_nobody(check, group, member) : verdict;
}

/* "... unless a specific source address is provided": no route is needed. */
enum verdict case_resolved_from(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group = check_group(check, JOINED);
	struct member *member;
	enum verdict verdict = step_open(check, &member);
	int err;

	(void)arg;
	if (verdict != PASS)
		return verdict;
	err = member_resolve(member, node_gid(&check->bench.nodes[0], IPV4),
			     &group);
	verdict = bench_errno("rdma_resolve_addr from an address of ours", err,
			      0);
	return verdict == PASS ? join_resolved(check, member, &group) : verdict;
}

/* Adds or deletes the route to all IPv4 groups; whether that was done. */
static bool ip_route(const char *verb, unsigned int ifindex)
{
	char name[IF_NAMESIZE], command[128];

	if (!if_indextoname(ifindex, name))
		return false;
	snprintf(command, sizeof(command), "ip route %s 239.0.0.0/8 dev %s",
		 verb, name);
	return !system(command);
}

/* "... requires the local routing tables to resolve the multicast address." */
enum verdict case_resolved_by_route(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group = check_group(check, JOINED);
	struct member *lost, *member, *bound;
	enum verdict verdict = step_bound(check, IPV4, &bound);

	(void)arg;
	if (verdict == PASS)
		verdict = step_open(check, &lost);
	if (verdict == PASS)
		verdict = bench_errno("rdma_resolve_addr without a route",
				      member_resolve(lost, NULL, &group),
				      ENETUNREACH);
	if (verdict == PASS)
		verdict = step_open(check, &member);
	if (verdict != PASS)
		return verdict;
	if (!ip_route("add", bound->ifindex))
		return ktap_fail("a route to 239.0.0.0/8 cannot be added");
	verdict = bench_errno("rdma_resolve_addr with a route",
			      member_resolve(member, NULL, &group), 0);
	if (verdict == PASS)
		verdict = join_resolved(check, member, &group);
	if (!ip_route("del", bound->ifindex) && verdict == PASS)
		verdict = ktap_fail("the route cannot be deleted");
	return verdict;
}
