// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "cases.h"

/* Sends from a member's queue pair to @group and judges what @receiver gets. */
static enum verdict sends(struct check *check, struct member *member,
			  const union ibv_gid *group, struct party *receiver)
{
	struct shot shot = {
		.to = *group,
		.length = 128,
		.sender = seat_of(check, member),
	};
	enum verdict verdict = bench_shoot(&check->bench, &shot);

	return verdict == PASS ? bench_expect(&check->bench, &shot, receiver, 1) :
				 verdict;
}

/* A new member that has joined @group as send-only. */
static enum verdict send_only(struct check *check, const union ibv_gid *group,
			      struct member **member)
{
	enum verdict verdict = step_member(check, member);

	return verdict == PASS ?
		       step_join_as(*member, group,
				    RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER) :
		       verdict;
}

/* Full member: makes the group, sends to it, receives from it. */
enum verdict case_full_member(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group = check_group(check, JOINED);
	struct party *receiver;
	struct member *member;
	enum verdict verdict = step_member(check, &member);

	(void)arg;
	if (verdict == PASS)
		verdict = step_join_as(member, &group,
				       RDMA_MC_JOIN_FLAG_FULLMEMBER);
	if (verdict == PASS)
		verdict = step_full(check, &group, member);
	if (verdict == PASS)
		verdict = step_deliver(check, &group, member, 1);
	if (verdict == PASS)
		verdict = step_receiver(check, &group, &receiver);
	return verdict == PASS ? sends(check, member, &group, receiver) :
				 verdict;
}

/* Send-only: sends to the group, and gets nothing though it comes to this machine. */
enum verdict case_send_only(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group = check_group(check, OTHER);
	struct member *member, *full;
	struct party *receiver;
	struct shot shot;
	enum verdict verdict = send_only(check, &group, &member);

	(void)arg;
	if (verdict == PASS)
		verdict = step_receiver(check, &group, &receiver);
	if (verdict == PASS)
		verdict = sends(check, member, &group, receiver);
	if (verdict == PASS)
		verdict = step_members(check, &group, &full, 1);
	if (verdict == PASS)
		verdict = step_switch(&group, true);
	if (verdict == PASS)
		verdict = step_send(check, &group, &shot);
	if (verdict == PASS)
		verdict = bench_expect(&check->bench, &shot,
				       seat_of(check, full), 1);
	return verdict == PASS ? bench_expect(&check->bench, &shot,
					      seat_of(check, member), 0) :
				 verdict;
}

/* Send-only: no IGMP. What is joined afterwards comes to the switch all the same. */
enum verdict case_send_only_silent(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid quiet = check_group(check, SEND_ONLY);
	union ibv_gid later = check_group(check, JOINED);
	struct member *member;
	enum verdict verdict = send_only(check, &quiet, &member);

	(void)arg;
	if (verdict == PASS)
		verdict = step_host(member, &quiet, 0);
	if (verdict == PASS)
		verdict = step_join(member, &later);
	if (verdict == PASS)
		verdict = step_full(check, &later, member);
	if (verdict == PASS)
		verdict = step_switch(&quiet, false);
	if (verdict == PASS)
		verdict = step_leave(member, &quiet);
	return verdict == PASS ? step_full(check, &later, member) : verdict;
}

/* "When Send Only Full Member is used the QP will not be attached." */
enum verdict case_send_only_not_attached(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group = check_group(check, OTHER);
	struct member *member, *other;
	enum verdict verdict = send_only(check, &group, &member);

	(void)arg;
	if (verdict == PASS)
		verdict = step_device(check, &group, NULL);
	/* With another in the group, what is sent to it comes to this machine. */
	if (verdict == PASS)
		verdict = step_full_member(check, &group, &other);
	return verdict == PASS ? step_deliver(check, &group, member, 0) :
				 verdict;
}

/* A send-only member that leaves takes nothing from a full one. */
enum verdict case_send_only_leaves(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group = check_group(check, JOINED);
	struct member *full, *sender;
	enum verdict verdict = step_full_member(check, &group, &full);

	(void)arg;
	if (verdict == PASS)
		verdict = send_only(check, &group, &sender);
	if (verdict == PASS)
		verdict = step_full(check, &group, full);
	if (verdict == PASS)
		verdict = step_leave(sender, &group);
	if (verdict == PASS)
		verdict = step_full(check, &group, full);
	return verdict == PASS ? step_deliver(check, &group, full, 1) : verdict;
}
