// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "cases.h"

/* Datagrams that are on their way while somebody leaves. */
#define STREAM 500
/* Groups of an identifier that is destroyed. */
#define GROUPS 3

/* "Leaves a multicast group and detaches an associated QP." @arg: joined by _ex. */
enum verdict case_leave(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group = check_group(check, JOINED);
	struct member *member;
	enum verdict verdict = step_member(check, &member);

	if (verdict == PASS)
		verdict = arg ? step_join_as(member, &group,
					     RDMA_MC_JOIN_FLAG_FULLMEMBER) :
				step_join(member, &group);
	if (verdict == PASS)
		verdict = step_full(check, &group, member);
	if (verdict == PASS)
		verdict = step_deliver(check, &group, member, 1);
	if (verdict == PASS)
		verdict = step_leave(member, &group);
	if (verdict == PASS)
		verdict = step_nobody(check, &group, member);
	if (verdict == PASS)
		verdict = step_deliver(check, &group, member, 0);
	/* Left, it can be joined again. */
	if (verdict == PASS)
		verdict = step_join(member, &group);
	if (verdict == PASS)
		verdict = step_full(check, &group, member);
	return verdict == PASS ? step_deliver(check, &group, member, 1) :
				 verdict;
}

/* "... before a group has been fully joined results in canceling the join." */
enum verdict case_leave_cancels(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group[2] = { check_group(check, JOINED),
				   check_group(check, JOINED) };
	struct member_event event;
	struct member *member;
	enum verdict verdict = step_member(check, &member);

	(void)arg;
	if (verdict == PASS)
		verdict = bench_errno("join",
				      member_join(member, &group[0], NULL), 0);
	if (verdict == PASS && !member_pending(member, WAIT_MS))
		verdict = ktap_fail("no event of the join in %d ms", WAIT_MS);
	if (verdict == PASS)
		verdict = step_leave(member, &group[0]);
	if (verdict == PASS && member_pending(member, 0))
		verdict = ktap_fail("the event of the join that was left is still there");
	if (verdict == PASS)
		verdict = step_nobody(check, &group[0], member);
	/* The next event is the next join's. */
	if (verdict == PASS)
		verdict = bench_errno("join of another group",
				      member_join(member, &group[1], member), 0);
	if (verdict == PASS)
		verdict = step_joined(member, &event);
	if (verdict == PASS && event.context != member)
		verdict = ktap_fail("the next event is not the next join's");
	return verdict == PASS ? step_device(check, &group[0], NULL) : verdict;
}

/* "Messages may still be queued for completion processing." */
enum verdict case_leave_queued(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group = check_group(check, JOINED);
	struct member *member[2];
	enum verdict verdict = step_members(check, &group, member, 2);
	struct shot shot;

	(void)arg;
	if (verdict == PASS)
		verdict = step_switch(&group, true);
	if (verdict == PASS)
		verdict = step_send(check, &group, &shot);
	/* What the second has got, the first has in its queue. */
	if (verdict == PASS)
		verdict = bench_expect(&check->bench, &shot,
				       seat_of(check, member[1]), 1);
	if (verdict == PASS)
		verdict = step_leave(member[0], &group);
	return verdict == PASS ? bench_expect(&check->bench, &shot,
					      seat_of(check, member[0]), 1) :
				 verdict;
}

struct stream {
	struct party *sender;
	struct datagram datagram;
	int err;
};

static void *stream(void *argument)
{
	struct stream *stream = argument;

	stream->err = node_send(stream->sender->node, stream->sender->id,
				&stream->datagram, STREAM);
	return NULL;
}

/* Leaves as soon as the first datagram of the stream is there. */
static enum verdict leave_at_first(struct check *check, struct member *member,
				   const union ibv_gid *group)
{
	struct party *seat = seat_of(check, member);
	struct endpoint *endpoint = &seat->node->endpoints[seat->id];
	struct received first;
	uint32_t count;
	int err;

	err = endpoint_receive(endpoint, WAIT_MS, &first, 1, &count);
	if (err)
		return ktap_fail("wait for the first datagram of the stream: %s",
				 strerror(err));
	return step_leave(member, group);
}

/* Takes what is in the queue, which may be full: a marker would not fit in. */
static enum verdict make_room(struct check *check, struct member *member)
{
	struct party *seat = seat_of(check, member);
	struct endpoint *endpoint = &seat->node->endpoints[seat->id];
	struct received one;
	uint32_t count;
	int err;

	do
		err = endpoint_receive(endpoint, 0, &one, 1, &count);
	while (!err);
	return bench_errno("take what came before the leave", err, ETIMEDOUT);
}

/* Leaves in the middle of traffic: afterwards nothing comes, and all works. */
enum verdict case_leave_in_traffic(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group = check_group(check, JOINED);
	struct stream order = {
		.datagram = {
			.to = group,
			.qpn = MULTICAST_QPN,
			.qkey = DEFAULT_QKEY,
			.length = 128,
			.token = 1,
		},
	};
	struct member *member;
	pthread_t thread;
	enum verdict verdict = step_full_member(check, &group, &member);
	int err;

	(void)arg;
	if (verdict == PASS)
		verdict = bench_party(&check->bench, 1, IPV4, &order.sender);
	if (verdict != PASS)
		return verdict;
	err = pthread_create(&thread, NULL, stream, &order);
	if (err)
		return ktap_fail("start a thread: %s", strerror(err));
	verdict = leave_at_first(check, member, &group);
	pthread_join(thread, NULL);
	if (verdict == PASS)
		verdict = bench_errno("the stream", order.err, 0);
	if (verdict == PASS)
		verdict = step_nobody(check, &group, member);
	if (verdict == PASS)
		verdict = make_room(check, member);
	if (verdict != PASS)
		return verdict;
	verdict = bench_drain(&check->bench, order.sender,
			      seat_of(check, member));
	return verdict == PASS ? step_deliver(check, &group, member, 0) :
				 verdict;
}

/* "Destroying an rdma_cm_id will automatically leave all multicast groups." */
enum verdict case_destroy_leaves(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group[GROUPS];
	struct member *member, kept;
	enum verdict verdict = step_bound(check, IPV4, &member);
	int i;

	(void)arg;
	for (i = 0; i < GROUPS && verdict == PASS; i++) {
		group[i] = check_group(check, JOINED);
		verdict = step_join(member, &group[i]);
		if (verdict == PASS)
			verdict = step_switch(&group[i], true);
	}
	if (verdict != PASS)
		return verdict;
	kept = *member;
	/* Or it would leave them one by one. */
	member->joins = 0;
	verdict = bench_errno("rdma_destroy_id", member_close(member), 0);
	for (i = 0; i < GROUPS && verdict == PASS; i++)
		verdict = step_nobody(check, &group[i], &kept);
	return verdict;
}
