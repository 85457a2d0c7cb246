// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <string.h>

#include "cases.h"

/* errno of the kernel's own, which has no name here. */
#define KERNEL_ENOTSUPP 524
/* Members that a group is filled with, if the device takes no more. */
#define FEW 8

static int give(int result)
{
	return result ? errno : 0;
}

/* rdma_join_multicast(): "-1 on error, ... errno will indicate the reason". */
enum verdict case_join_refused(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid zero, group = check_group(check, OTHER);
	struct sockaddr_storage nowhere = { .ss_family = AF_UNIX };
	struct member *member, connected = { 0 };
	enum verdict verdict = step_bound(check, IPV4, &member);
	int err;

	(void)arg;
	if (verdict != PASS)
		return verdict;
	gid_parse("0.0.0.0", &zero);
	verdict = bench_errno("join of the zero address",
			      member_join(member, &zero, NULL), EINVAL);
	if (verdict != PASS)
		return verdict;
	err = give(rdma_join_multicast(member->id, (struct sockaddr *)&nowhere,
				       NULL));
	verdict = bench_errno("join of what is no IP address", err, EINVAL);
	if (verdict != PASS)
		return verdict;
	/* Groups are for datagrams. */
	err = member_open(&connected, RDMA_PS_TCP);
	if (!err)
		err = member_bind(&connected, &member->address);
	if (!err)
		err = member_join(&connected, &group, NULL);
	verdict = bench_errno("join with an identifier of RDMA_PS_TCP", err,
			      EINVAL);
	err = member_close(&connected);
	if (verdict == PASS)
		verdict = bench_errno("rdma_destroy_id", err, 0);
	return verdict == PASS ? step_nobody(check, &group, member) : verdict;
}

/* The masks and flags that there are, and no others. */
enum verdict case_ex_refused(void *context, int arg)
{
	static const struct {
		const char *what;
		uint32_t mask, flags;
		int want;
	} calls[] = {
		{ "comp_mask with a bit that does not exist",
		  RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS |
		  RDMA_CM_JOIN_MC_ATTR_RESERVED, 0, ENOTSUP },
		{ "comp_mask without the address",
		  RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS, 0, EINVAL },
		{ "comp_mask without flags",
		  RDMA_CM_JOIN_MC_ATTR_ADDRESS, 0, EINVAL },
		{ "comp_mask of nothing", 0, 0, EINVAL },
		{ "a flag that does not exist",
		  RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		  RDMA_MC_JOIN_FLAG_RESERVED, EINVAL },
	};
	struct check *check = context;
	union ibv_gid zero, group = check_group(check, OTHER);
	struct sockaddr_storage address;
	struct member *member;
	enum verdict verdict = step_bound(check, IPV4, &member);
	size_t i;
	int err;

	(void)arg;
	gid_address(&group, 0, &address);
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]) && verdict == PASS; i++) {
		struct rdma_cm_join_mc_attr_ex attr = {
			.comp_mask = calls[i].mask,
			.join_flags = calls[i].flags,
			.addr = (struct sockaddr *)&address,
		};

		err = give(rdma_join_multicast_ex(member->id, &attr, NULL));
		verdict = bench_errno(calls[i].what, err, calls[i].want);
	}
	if (verdict != PASS)
		return verdict;
	gid_parse("0.0.0.0", &zero);
	err = member_join_as(member, &zero,
			     RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, NULL);
	verdict = bench_errno("send-only join of the zero address", err, EINVAL);
	return verdict == PASS ? step_nobody(check, &group, member) : verdict;
}

/* What was never joined, or was left already, cannot be left. */
enum verdict case_leave_refused(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group = check_group(check, JOINED);
	union ibv_gid other = check_group(check, OTHER);
	struct sockaddr_storage nowhere = { .ss_family = AF_UNIX };
	struct member *member;
	enum verdict verdict = step_members(check, &group, &member, 1);
	int err;

	(void)arg;
	if (verdict == PASS)
		verdict = bench_errno("leave of what was not joined",
				      member_leave(member, &other),
				      EADDRNOTAVAIL);
	if (verdict != PASS)
		return verdict;
	err = give(rdma_leave_multicast(member->id,
					(struct sockaddr *)&nowhere));
	verdict = bench_errno("leave of what is no IP address", err, EINVAL);
	if (verdict == PASS)
		verdict = step_full(check, &group, member);
	if (verdict == PASS)
		verdict = step_leave(member, &group);
	return verdict == PASS ? bench_errno("second leave",
					     member_leave(member, &group),
					     EADDRNOTAVAIL) : verdict;
}

/* An IPv6 group is refused on RoCEv2; attached by hand it works. */
enum verdict case_ipv6_group(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group = bench_group(&check->bench, IPV6);
	struct member *member;
	struct party *receiver;
	struct shot shot;
	enum verdict verdict = step_bound(check, arg, &member);
	int err;

	if (verdict == PASS)
		verdict = bench_errno("join of an IPv6 group",
				      member_join(member, &group, NULL),
				      KERNEL_ENOTSUPP);
	if (verdict != PASS)
		return verdict;
	err = member_join_as(member, &group,
			     RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, NULL);
	verdict = bench_errno("send-only join of an IPv6 group", err,
			      KERNEL_ENOTSUPP);
	if (verdict == PASS)
		verdict = step_nobody(check, &group, member);
	if (verdict == PASS)
		verdict = step_receiver(check, &group, &receiver);
	if (verdict != PASS)
		return verdict;
	shot = (struct shot){ .to = group, .length = 128 };
	verdict = bench_party(&check->bench, 0, IPV6, &shot.sender);
	if (verdict == PASS)
		verdict = bench_shoot(&check->bench, &shot);
	return verdict == PASS ? bench_expect(&check->bench, &shot, receiver, 1) :
				 verdict;
}

/* Fetches the event of a join whose queue pair could not be attached. */
static enum verdict error_of(struct member *member, void *want)
{
	struct member_event event;
	int err = member_event(member, &event);

	if (err)
		return ktap_fail("wait for the event of the join: %s",
				 strerror(err));
	if (event.type != RDMA_CM_EVENT_MULTICAST_ERROR || event.status != -1)
		return ktap_fail("the join gives event %s, status %d",
				 rdma_event_str(event.type), event.status);
	if (event.context != want)
		return ktap_fail("the event has another context");
	return PASS;
}

/* The join is done, the attach is not: the event says so. */
enum verdict case_attach_fails(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid one = check->bench.nodes[0].gid[0];
	struct member *member;
	enum verdict verdict = step_member(check, &member);

	(void)arg;
	if (verdict == PASS)
		verdict = bench_errno("join of an address of one machine",
				      member_join(member, &one, &one), 0);
	if (verdict == PASS)
		verdict = error_of(member, &one);
	if (verdict == PASS)
		verdict = step_leave(member, &one);
	return verdict == PASS ? step_host(member, &one, 0) : verdict;
}

/* One member more than the group takes. */
enum verdict case_full_group(void *context, int arg)
{
	struct check *check = context;
	int limit = (int)check->bench.device->attr.max_mcast_qp_attach;
	union ibv_gid group = check_group(check, JOINED);
	struct member *member[FEW + 1];
	enum verdict verdict;
	struct shot shot;
	int i;

	(void)arg;
	if (limit > FEW)
		return ktap_skip("%s takes %d members: too many to fill a group",
				 check->bench.device->name, limit);
	verdict = step_members(check, &group, member, limit);
	if (verdict == PASS)
		verdict = step_member(check, &member[limit]);
	if (verdict == PASS)
		verdict = bench_errno("one join too many",
				      member_join(member[limit], &group, &group),
				      0);
	if (verdict == PASS)
		verdict = error_of(member[limit], &group);
	if (verdict == PASS)
		verdict = step_switch(&group, true);
	if (verdict == PASS)
		verdict = step_send(check, &group, &shot);
	for (i = 0; i <= limit && verdict == PASS; i++)
		verdict = bench_expect(&check->bench, &shot,
				       seat_of(check, member[i]), i < limit);
	return verdict;
}
