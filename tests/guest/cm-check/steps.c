// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "cases.h"
#include "host.h"

union ibv_gid check_group(struct check *check, enum use use)
{
	static const unsigned int octet[] = { 76, 77, 78 };
	uint32_t n = ++check->next_group[use];
	union ibv_gid group;
	char text[32];

	snprintf(text, sizeof(text), "239.%u.%u.%u", octet[use], n >> 8 & 0xff,
		 n & 0xff);
	gid_parse(text, &group);
	return group;
}

enum verdict step_open(struct check *check, struct member **out)
{
	struct member *member = &check->members[check->member_count];
	int err;

	if (check->member_count == MAX_MEMBERS)
		return ktap_fail("open an identifier: room for %d only",
				 MAX_MEMBERS);
	err = member_open(member, RDMA_PS_UDP);
	if (err)
		return ktap_fail("rdma_create_id: %s", strerror(err));
	check->seats[check->member_count++] = NULL;
	*out = member;
	return PASS;
}

enum verdict step_bound(struct check *check, enum family family,
			struct member **out)
{
	const union ibv_gid *address = node_gid(&check->bench.nodes[0], family);
	enum verdict verdict = step_open(check, out);
	int err;

	if (verdict != PASS)
		return verdict;
	err = member_bind(*out, address);
	if (err)
		return ktap_fail("rdma_bind_addr to %s: %s", gid_text(address),
				 strerror(err));
	return PASS;
}

enum verdict step_queue_pair(struct check *check, struct member *member)
{
	struct bench *bench = &check->bench;
	struct party *party = &bench->parties[bench->party_count];
	uint32_t id = bench->next_id[0]++;
	struct endpoint *endpoint;
	int err;

	if (bench->party_count == MAX_PARTIES || id >= NODE_ENDPOINTS)
		return ktap_fail("make a queue pair: the bench is full");
	endpoint = &bench->nodes[0].endpoints[id];
	if (endpoint->qp)
		return ktap_fail("make a queue pair: place %u is taken by one that could not be destroyed",
				 id);
	err = member_endpoint(member, endpoint, DEFAULT_DEPTH);
	if (err)
		return ktap_fail("rdma_create_qp: %s", strerror(err));
	*party = (struct party){
		.node = &bench->nodes[0],
		.id = id,
		.qpn = endpoint->qp->qp_num,
		.qkey = DEFAULT_QKEY,
		.family = gid_family(&member->address),
	};
	bench->party_count++;
	check->seats[member - check->members] = party;
	return PASS;
}

enum verdict step_member(struct check *check, struct member **out)
{
	enum verdict verdict = step_bound(check, IPV4, out);

	return verdict == PASS ? step_queue_pair(check, *out) : verdict;
}

struct party *seat_of(struct check *check, const struct member *member)
{
	return check->seats[member - check->members];
}

enum verdict step_joined(struct member *member, struct member_event *event)
{
	int err = member_event(member, event);

	if (err)
		return ktap_fail("wait for the event of the join: %s",
				 strerror(err));
	if (event->type != RDMA_CM_EVENT_MULTICAST_JOIN || event->status)
		return ktap_fail("the join gives event %s, status %d",
				 rdma_event_str(event->type), event->status);
	return PASS;
}

static enum verdict finish_join(struct member *member,
				const union ibv_gid *group, int err)
{
	struct member_event event;

	if (err)
		return ktap_fail("join %s: %s", gid_text(group), strerror(err));
	return step_joined(member, &event);
}

enum verdict step_join(struct member *member, const union ibv_gid *group)
{
	return finish_join(member, group, member_join(member, group, NULL));
}

enum verdict step_join_as(struct member *member, const union ibv_gid *group,
			  enum rdma_cm_mc_join_flags flags)
{
	return finish_join(member, group,
			   member_join_as(member, group, flags, NULL));
}

enum verdict step_members(struct check *check, const union ibv_gid *group,
			  struct member **members, int count)
{
	enum verdict verdict = PASS;
	int i;

	for (i = 0; i < count && verdict == PASS; i++) {
		verdict = step_member(check, &members[i]);
		if (verdict == PASS)
			verdict = step_join(members[i], group);
	}
	return verdict;
}

enum verdict step_leave(struct member *member, const union ibv_gid *group)
{
	return bench_errno("rdma_leave_multicast", member_leave(member, group),
			   0);
}

enum verdict step_host(const struct member *member, const union ibv_gid *group,
		       int users)
{
	int found = host_users(group, member->ifindex);

	if (found != users)
		return ktap_fail("the kernel counts %d users of %s, not %d",
				 found, gid_text(group), users);
	return PASS;
}

enum verdict step_switch(const union ibv_gid *group, bool here)
{
	if (!nic_await_group(group, here))
		return PASS;
	return ktap_fail("the switch %s %s here", here ? "does not send" :
							"still sends",
			 gid_text(group));
}

enum verdict step_device(struct check *check, const union ibv_gid *group,
			 const struct member *member)
{
	struct party *party = member ? seat_of(check, member) : NULL;

	if (!nic_available())
		return PASS;
	return bench_device_has(group, &party, party ? 1 : 0);
}

enum verdict step_full(struct check *check, const union ibv_gid *group,
		       struct member *member)
{
	enum verdict verdict = step_host(member, group, 1);

	if (verdict == PASS)
		verdict = step_switch(group, true);
	return verdict == PASS ? step_device(check, group, member) : verdict;
}

enum verdict step_full_member(struct check *check, const union ibv_gid *group,
			      struct member **member)
{
	enum verdict verdict = step_members(check, group, member, 1);

	return verdict == PASS ? step_full(check, group, *member) : verdict;
}

enum verdict step_nobody(struct check *check, const union ibv_gid *group,
			 const struct member *member)
{
	enum verdict verdict = step_host(member, group, 0);

	if (verdict == PASS)
		verdict = step_switch(group, false);
	return verdict == PASS ? step_device(check, group, NULL) : verdict;
}

enum verdict step_send(struct check *check, const union ibv_gid *group,
		       struct shot *shot)
{
	enum verdict verdict;

	*shot = (struct shot){ .to = *group, .length = 128 };
	verdict = bench_party(&check->bench, 1, gid_family(group),
			      &shot->sender);
	return verdict == PASS ? bench_shoot(&check->bench, shot) : verdict;
}

enum verdict step_deliver(struct check *check, const union ibv_gid *group,
			  struct member *member, uint32_t copies)
{
	struct shot shot;
	enum verdict verdict = step_send(check, group, &shot);

	return verdict == PASS ? bench_expect(&check->bench, &shot,
					      seat_of(check, member), copies) :
				 verdict;
}

enum verdict step_receiver(struct check *check, const union ibv_gid *group,
			   struct party **receiver)
{
	enum verdict verdict;

	verdict = bench_party(&check->bench, 1, gid_family(group), receiver);
	if (verdict == PASS)
		verdict = bench_errno("join of the receiver's host",
				      node_host_join((*receiver)->node, group),
				      0);
	return verdict == PASS ? bench_attach(*receiver, group) : verdict;
}
