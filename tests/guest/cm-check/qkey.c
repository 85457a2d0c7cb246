// SPDX-License-Identifier: GPL-2.0
#include "cases.h"

/* A Q_Key that no join gives. */
#define OWN_QKEY 0x11111111

static int set_qkey(const struct party *seat, uint32_t qkey)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .qkey = qkey };

	return ibv_modify_qp(seat->node->endpoints[seat->id].qp, &attr,
			     IBV_QP_STATE | IBV_QP_QKEY);
}

/* Sends to @group with @qkey; who of @member has that has to get it, and no other. */
static enum verdict deliver_by_qkey(struct check *check,
				    const union ibv_gid *group, uint32_t qkey,
				    struct member *const *member, int count)
{
	struct bench *bench = &check->bench;
	struct shot shot = { .to = *group, .length = 64, .count = 1 };
	struct datagram datagram = {
		.to = *group,
		.qpn = MULTICAST_QPN,
		.qkey = qkey,
		.length = shot.length,
		.token = bench->next_token,
	};
	enum verdict verdict = bench_party(bench, 1, IPV4, &shot.sender);
	int i;

	if (verdict != PASS)
		return verdict;
	shot.first_token = bench->next_token++;
	verdict = bench_errno("send with a Q_Key",
			      node_send(shot.sender->node, shot.sender->id,
					&datagram, 1), 0);
	for (i = 0; i < count && verdict == PASS; i++) {
		struct party *seat = seat_of(check, member[i]);

		verdict = bench_expect(bench, &shot, seat, seat->qkey == qkey);
	}
	return verdict;
}

/* All joins give one Q_Key; a member that takes another is none for who sends with that. */
enum verdict case_join_qkeys(void *context, int arg)
{
	static const uint32_t own[] = { OWN_QKEY, DEFAULT_QKEY };
	struct check *check = context;
	union ibv_gid group = check_group(check, JOINED);
	struct member *member[2];
	enum verdict verdict = step_members(check, &group, member, 2);
	size_t i;

	(void)arg;
	if (verdict == PASS)
		verdict = step_switch(&group, true);
	for (i = 0; i < sizeof(own) / sizeof(own[0]) && verdict == PASS; i++) {
		struct party *seat = seat_of(check, member[1]);

		verdict = bench_errno("ibv_modify_qp of the Q_Key",
				      set_qkey(seat, own[i]), 0);
		if (verdict == PASS)
			seat->qkey = own[i];
		if (verdict == PASS)
			verdict = deliver_by_qkey(check, &group, DEFAULT_QKEY,
						  member, 2);
		if (verdict == PASS)
			verdict = deliver_by_qkey(check, &group, OWN_QKEY,
						  member, 2);
	}
	return verdict;
}
