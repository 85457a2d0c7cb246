// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "cases.h"

/* Groups in case_join_many(); a host's sockets may join no more than 20 each. */
#define MANY 100
/* The switch forgets who does not answer its queries; longer than that. */
#define LASTS_MS 8000

/* "Joins a multicast group and attaches an associated QP." */
enum verdict case_join(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group = check_group(check, JOINED);
	struct member *member;
	enum verdict verdict = step_full_member(check, &group, &member);

	(void)arg;
	return verdict == PASS ? step_deliver(check, &group, member, 1) :
				 verdict;
}

/* Each join of one identifier has a context of its own. @arg: whether by _ex. */
enum verdict case_join_context(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group[2] = { check_group(check, JOINED),
				   check_group(check, JOINED) };
	struct member_event event;
	struct member *member;
	enum verdict verdict = step_member(check, &member);
	int i, seen = 0;

	for (i = 0; i < 2 && verdict == PASS; i++)
		verdict = bench_errno("join", arg ?
			member_join_as(member, &group[i],
				       RDMA_MC_JOIN_FLAG_FULLMEMBER, &group[i]) :
			member_join(member, &group[i], &group[i]), 0);
	while (seen != 3 && verdict == PASS) {
		verdict = step_joined(member, &event);
		if (verdict != PASS)
			break;
		for (i = 0; i < 2; i++)
			if (!memcmp(&event.address.grh.dgid, &group[i],
				    sizeof(group[i])))
				break;
		if (i == 2 || seen & 1 << i)
			return ktap_fail("event of %s, which was not due",
					 gid_text(&event.address.grh.dgid));
		if (event.context != &group[i])
			return ktap_fail("event of %s has another join's context",
					 gid_text(&group[i]));
		seen |= 1 << i;
	}
	return verdict;
}

/* Sends one datagram through the address handle, QP number and Q_Key of an event. */
static enum verdict send_by_event(struct endpoint *endpoint,
				  const struct member_event *event,
				  uint32_t token)
{
	struct datagram datagram = {
		.to = event->address.grh.dgid,
		.qpn = event->qpn,
		.qkey = event->qkey,
		.length = 64,
		.token = token,
	};
	struct ibv_ah_attr attr = event->address;
	int err;

	if (endpoint->ah)
		ibv_destroy_ah(endpoint->ah);
	endpoint->ah = ibv_create_ah(endpoint->pd, &attr);
	if (!endpoint->ah)
		return ktap_fail("address handle of the event: %s",
				 strerror(errno));
	endpoint->ah_gid = event->address.grh.dgid;
	err = endpoint_send(endpoint, &datagram, 1);
	return bench_errno("send by the event's address", err, 0);
}

/* What the event says of the group is what a sender needs. */
enum verdict case_join_event_fields(void *context, int arg)
{
	struct check *check = context;
	struct bench *bench = &check->bench;
	union ibv_gid group = check_group(check, JOINED);
	struct shot shot = { .to = group, .length = 64, .count = 1 };
	struct member_event event = { 0 };
	struct party *receiver, *seat;
	struct member *member;
	enum verdict verdict = step_member(check, &member);

	(void)arg;
	if (verdict == PASS)
		verdict = step_receiver(check, &group, &receiver);
	if (verdict == PASS)
		verdict = bench_errno("join",
				      member_join(member, &group, NULL), 0);
	if (verdict == PASS)
		verdict = step_joined(member, &event);
	if (verdict != PASS)
		return verdict;
	if (event.qpn != MULTICAST_QPN || event.qkey != RDMA_UDP_QKEY ||
	    memcmp(&event.address.grh.dgid, &group, sizeof(group)))
		return ktap_fail("event says QP 0x%x, Q_Key 0x%x, group %s",
				 event.qpn, event.qkey,
				 gid_text(&event.address.grh.dgid));
	seat = seat_of(check, member);
	shot.sender = seat;
	shot.first_token = bench->next_token++;
	verdict = send_by_event(&seat->node->endpoints[seat->id], &event,
				shot.first_token);
	return verdict == PASS ? bench_expect(bench, &shot, receiver, 1) :
				 verdict;
}

/* "Attached when the multicast event is retrieved": not before. */
enum verdict case_join_attached_at_event(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group = check_group(check, JOINED);
	struct member_event event;
	struct member *member;
	enum verdict verdict = step_member(check, &member);

	(void)arg;
	if (verdict == PASS)
		verdict = bench_errno("join",
				      member_join(member, &group, NULL), 0);
	if (verdict == PASS && !member_pending(member, WAIT_MS))
		verdict = ktap_fail("no event of the join in %d ms", WAIT_MS);
	/* The fabric knows already, so that what is sent comes to this machine. */
	if (verdict == PASS)
		verdict = step_switch(&group, true);
	if (verdict == PASS)
		verdict = step_device(check, &group, NULL);
	if (verdict == PASS)
		verdict = step_deliver(check, &group, member, 0);
	if (verdict == PASS)
		verdict = step_joined(member, &event);
	if (verdict == PASS)
		verdict = step_device(check, &group, member);
	return verdict == PASS ? step_deliver(check, &group, member, 1) :
				 verdict;
}

/* "Otherwise, the user is responsible for calling ibv_attach_mcast." */
enum verdict case_join_by_hand(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group = check_group(check, JOINED);
	struct member *member;
	struct party *seat;
	enum verdict verdict = step_bound(check, IPV4, &member);

	(void)arg;
	if (verdict == PASS)
		verdict = step_join(member, &group);
	if (verdict == PASS)
		verdict = step_switch(&group, true);
	if (verdict == PASS)
		verdict = step_queue_pair(check, member);
	if (verdict == PASS)
		verdict = step_device(check, &group, NULL);
	if (verdict == PASS)
		verdict = step_deliver(check, &group, member, 0);
	if (verdict != PASS)
		return verdict;
	seat = seat_of(check, member);
	verdict = bench_attach(seat, &group);
	if (verdict == PASS)
		verdict = step_deliver(check, &group, member, 1);
	/* Leaving detaches what was attached by hand. */
	if (verdict == PASS)
		verdict = step_leave(member, &group);
	if (verdict == PASS)
		verdict = step_nobody(check, &group, member);
	return verdict == PASS ? step_deliver(check, &group, member, 0) :
				 verdict;
}

/* "The user must call rdma_leave_multicast": until then it lasts. */
enum verdict case_join_lasts(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group = check_group(check, JOINED);
	struct member *member;
	enum verdict verdict = step_full_member(check, &group, &member);

	(void)arg;
	/* Long enough for the switch to forget those that do not answer it. */
	poll(NULL, 0, LASTS_MS);
	if (verdict == PASS)
		verdict = step_full(check, &group, member);
	return verdict == PASS ? step_deliver(check, &group, member, 1) :
				 verdict;
}

/* Two identifiers in one group: the machine is in it until the last has left. */
enum verdict case_join_two_ids(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group = check_group(check, JOINED);
	struct member *member[2];
	enum verdict verdict = step_members(check, &group, member, 2);
	struct shot shot;
	int i;

	(void)arg;
	if (verdict == PASS)
		verdict = step_host(member[0], &group, 2);
	if (verdict == PASS)
		verdict = step_switch(&group, true);
	if (verdict == PASS)
		verdict = step_send(check, &group, &shot);
	for (i = 0; i < 2 && verdict == PASS; i++)
		verdict = bench_expect(&check->bench, &shot,
				       seat_of(check, member[i]), 1);
	if (verdict == PASS)
		verdict = step_leave(member[0], &group);
	if (verdict == PASS)
		verdict = step_full(check, &group, member[1]);
	if (verdict == PASS)
		verdict = step_deliver(check, &group, member[1], 1);
	if (verdict == PASS)
		verdict = step_leave(member[1], &group);
	return verdict == PASS ? step_nobody(check, &group, member[1]) :
				 verdict;
}

/* A hundred groups of one identifier: the switch has heard of every one. */
enum verdict case_join_many(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group[MANY];
	struct member *member;
	enum verdict verdict = step_member(check, &member);
	int i;

	(void)arg;
	for (i = 0; i < MANY && verdict == PASS; i++) {
		group[i] = check_group(check, JOINED);
		verdict = step_join(member, &group[i]);
	}
	for (i = 0; i < MANY && verdict == PASS; i++)
		verdict = step_full(check, &group[i], member);
	for (i = 0; i < MANY && verdict == PASS; i += MANY / 4)
		verdict = step_deliver(check, &group[i], member, 1);
	for (i = 0; i < MANY && verdict == PASS; i++)
		verdict = step_leave(member, &group[i]);
	for (i = 0; i < MANY && verdict == PASS; i++)
		verdict = step_nobody(check, &group[i], member);
	return verdict;
}
