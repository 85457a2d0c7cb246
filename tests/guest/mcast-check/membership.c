// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cases.h"

static enum verdict start(struct bench *bench, enum family family,
			  struct shot *shot, struct party **member)
{
	enum verdict verdict;

	memset(shot, 0, sizeof(*shot));
	shot->to = bench_group(bench, family);
	shot->length = 128;
	verdict = bench_party(bench, 0, family, &shot->sender);
	return verdict == PASS ? bench_party(bench, 1, family, member) :
				 verdict;
}

static enum verdict deliver(struct bench *bench, struct shot *shot,
			    struct party *party, uint32_t copies)
{
	enum verdict verdict = bench_shoot(bench, shot);

	return verdict == PASS ? bench_expect(bench, shot, party, copies) :
				 verdict;
}

enum verdict case_join_and_leave(void *context, int arg)
{
	struct bench *bench = context;
	enum verdict verdict;
	struct party *member;
	struct shot shot;
	int round;

	verdict = start(bench, CASE_FAMILY(arg), &shot, &member);
	if (verdict == PASS)
		verdict = deliver(bench, &shot, member, 0);
	for (round = 0; round < 3 && verdict == PASS; round++) {
		verdict = bench_attach(member, &shot.to);
		if (verdict == PASS)
			verdict = deliver(bench, &shot, member, 1);
		if (verdict == PASS)
			verdict = bench_detach(member, &shot.to);
		if (verdict == PASS)
			verdict = deliver(bench, &shot, member, 0);
	}
	return verdict;
}

enum verdict case_duplicate_attach(void *context, int arg)
{
	struct bench *bench = context;
	enum verdict verdict;
	struct party *member;
	struct shot shot;

	verdict = start(bench, CASE_FAMILY(arg), &shot, &member);
	if (verdict == PASS)
		verdict = bench_attach(member, &shot.to);
	if (verdict == PASS)
		verdict = bench_attach(member, &shot.to);
	if (verdict == PASS)
		verdict = deliver(bench, &shot, member, 1);
	if (verdict == PASS)
		verdict = bench_detach(member, &shot.to);
	if (verdict == PASS)
		verdict = deliver(bench, &shot, member, 0);
	if (verdict == PASS)
		verdict = bench_errno("second detach",
				      node_detach(member->node, member->id,
						  &shot.to, 0), EINVAL);
	if (verdict == PASS)
		verdict = bench_errno("destroy after the detach",
				      node_shut(member->node, member->id), 0);
	return verdict;
}

/* With another MLID the same pair is attached a second time, and counts. */
enum verdict case_two_lids(void *context, int arg)
{
	const uint16_t lids[] = { 0, 0xc001 };
	struct bench *bench = context;
	enum verdict verdict;
	struct party *member;
	struct shot shot;
	size_t i;

	verdict = start(bench, CASE_FAMILY(arg), &shot, &member);
	for (i = 0; i < 2 && verdict == PASS; i++)
		verdict = bench_errno("attach with its own MLID",
				      node_attach(member->node, member->id,
						  &shot.to, lids[i]), 0);
	if (verdict == PASS)
		verdict = deliver(bench, &shot, member, 1);
	if (verdict == PASS)
		verdict = bench_errno("detach of the first MLID",
				      node_detach(member->node, member->id,
						  &shot.to, lids[0]), 0);
	if (verdict == PASS)
		verdict = deliver(bench, &shot, member, 1);
	if (verdict == PASS)
		verdict = bench_errno("detach of the second MLID",
				      node_detach(member->node, member->id,
						  &shot.to, lids[1]), 0);
	return verdict == PASS ? deliver(bench, &shot, member, 0) : verdict;
}

/* Ethernet has no MLIDs: any value is taken, the GID alone decides. */
enum verdict case_any_lid(void *context, int arg)
{
	const uint16_t lids[] = { 0xc000, 0x00c0, 0xffff };
	struct bench *bench = context;
	enum verdict verdict;
	struct party *member;
	struct shot shot;
	size_t i;

	verdict = start(bench, CASE_FAMILY(arg), &shot, &member);
	for (i = 0; i < 3 && verdict == PASS; i++) {
		verdict = bench_errno("attach with some MLID",
				      node_attach(member->node, member->id,
						  &shot.to, lids[i]), 0);
		if (verdict == PASS)
			verdict = deliver(bench, &shot, member, 1);
		if (verdict == PASS)
			verdict = bench_errno("detach with its MLID",
					      node_detach(member->node,
							  member->id,
							  &shot.to,
							  lids[i]), 0);
	}
	return verdict;
}

enum verdict case_detach_stranger(void *context, int arg)
{
	struct bench *bench = context;
	struct party *member, *stranger;
	enum verdict verdict;
	union ibv_gid unknown;
	struct shot shot;

	verdict = start(bench, CASE_FAMILY(arg), &shot, &member);
	if (verdict == PASS)
		verdict = bench_party(bench, 1, CASE_FAMILY(arg), &stranger);
	if (verdict == PASS)
		verdict = bench_attach(member, &shot.to);
	if (verdict != PASS)
		return verdict;
	verdict = bench_errno("detach of a QP that is no member",
			      node_detach(stranger->node, stranger->id,
					  &shot.to, 0), EINVAL);
	unknown = bench_group(bench, CASE_FAMILY(arg));
	if (verdict == PASS)
		verdict = bench_errno("detach from a group that is not there",
				      node_detach(member->node, member->id,
						  &unknown, 0), EINVAL);
	return verdict == PASS ? deliver(bench, &shot, member, 1) : verdict;
}

enum verdict case_destroy_attached(void *context, int arg)
{
	struct bench *bench = context;
	enum verdict verdict;
	struct party *member;
	struct shot shot;

	verdict = start(bench, CASE_FAMILY(arg), &shot, &member);
	if (verdict == PASS)
		verdict = bench_attach(member, &shot.to);
	if (verdict == PASS)
		verdict = bench_errno("destroy of an attached QP",
				      node_shut(member->node, member->id),
				      EBUSY);
	if (verdict == PASS)
		verdict = deliver(bench, &shot, member, 1);
	if (verdict == PASS)
		verdict = bench_detach(member, &shot.to);
	if (verdict == PASS)
		verdict = bench_errno("destroy after the detach",
				      node_shut(member->node, member->id), 0);
	return verdict;
}

enum verdict case_full_group(void *context, int arg)
{
	struct bench *bench = context;
	unsigned int limit = bench->device->attr.max_mcast_qp_attach;
	struct party *member[16], *late;
	enum verdict verdict;
	struct shot shot = { .length = 128 };
	unsigned int i;

	if (limit > 15)
		return ktap_skip("%s takes %u members: too many to fill a group",
				 bench->device->name, limit);
	shot.to = bench_group(bench, CASE_FAMILY(arg));
	verdict = bench_party(bench, 0, CASE_FAMILY(arg), &shot.sender);
	for (i = 0; i < limit && verdict == PASS; i++) {
		verdict = bench_party(bench, 0, CASE_FAMILY(arg), &member[i]);
		if (verdict == PASS)
			verdict = bench_attach(member[i], &shot.to);
	}
	if (verdict == PASS)
		verdict = bench_party(bench, 0, CASE_FAMILY(arg), &late);
	if (verdict == PASS)
		verdict = bench_errno("attach of one more than max_mcast_qp_attach",
				      node_attach(late->node, late->id,
						  &shot.to, 0), ENOMEM);
	if (verdict == PASS)
		verdict = bench_shoot(bench, &shot);
	for (i = 0; i < limit && verdict == PASS; i++)
		verdict = bench_expect(bench, &shot, member[i], 1);
	if (verdict == PASS)
		verdict = bench_expect(bench, &shot, late, 0);

	/* A place given up is taken. */
	if (verdict == PASS)
		verdict = bench_detach(member[limit / 2], &shot.to);
	if (verdict == PASS)
		verdict = bench_attach(late, &shot.to);
	if (verdict == PASS)
		verdict = bench_shoot(bench, &shot);
	for (i = 0; i < limit && verdict == PASS; i++)
		verdict = bench_expect(bench, &shot, member[i],
				       i != limit / 2);
	return verdict == PASS ? bench_expect(bench, &shot, late, 1) : verdict;
}

static const struct {
	enum ibv_qp_type type;
	const char *name;
} others[] = {
	{ IBV_QPT_RC, "RC" },
	{ IBV_QPT_UC, "UC" },
	{ IBV_QPT_RAW_PACKET, "RAW_PACKET" },
};

/* Queue pairs of another type exist for this case only, and only here. */
enum verdict case_other_qp_type(void *context, int arg)
{
	struct bench *bench = context;
	struct ibv_context *device = bench->device->context;
	union ibv_gid group = bench_group(bench, CASE_FAMILY(arg));
	const char *name = others[CASE_NUMBER(arg)].name;
	struct ibv_qp_init_attr attr = {
		.qp_type = others[CASE_NUMBER(arg)].type,
		.cap = {
			.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	enum verdict verdict = PASS;
	struct ibv_pd *pd = ibv_alloc_pd(device);
	struct ibv_cq *cq = ibv_create_cq(device, 4, NULL, NULL, 0);
	struct ibv_qp *qp = NULL;

	if (!pd || !cq) {
		verdict = ktap_fail("allocate PD and CQ: %s", strerror(errno));
		goto out;
	}
	attr.send_cq = cq;
	attr.recv_cq = cq;
	qp = ibv_create_qp(pd, &attr);
	if (!qp && (errno == EOPNOTSUPP || errno == EINVAL))
		verdict = ktap_skip("%s has no QPs of type %s (%s)",
				    bench->device->name, name, strerror(errno));
	else if (!qp)
		verdict = ktap_fail("create QP of type %s: %s", name,
				    strerror(errno));
	else
		verdict = bench_errno("attach",
				      ibv_attach_mcast(qp, &group, 0), EINVAL);
	if (qp)
		ibv_destroy_qp(qp);
out:
	if (cq)
		ibv_destroy_cq(cq);
	if (pd)
		ibv_dealloc_pd(pd);
	return verdict;
}

enum verdict case_unicast_gid(void *context, int arg)
{
	static const char *const addresses[] = {
		"10.99.0.77", "223.255.255.255", "240.0.0.1", "fe80::1",
		"fec0::1", "2001:db8::1", "::",
	};
	struct bench *bench = context;
	enum verdict verdict;
	struct party *party;
	size_t i;

	verdict = bench_party(bench, 0, CASE_FAMILY(arg), &party);
	for (i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		union ibv_gid gid;
		char action[64];

		if (verdict != PASS)
			break;
		gid_parse(addresses[i], &gid);
		snprintf(action, sizeof(action), "attach to %s", addresses[i]);
		verdict = bench_errno(action,
				      node_attach(party->node, party->id, &gid,
						  0), EINVAL);
	}
	return verdict;
}

/* Group number @n of a range of its own. */
static union ibv_gid nth_group(uint32_t n)
{
	union ibv_gid group;

	gid_parse("239.64.0.0", &group);
	group.raw[13] = 64 + (n >> 16 & 0x3f);
	group.raw[14] = n >> 8;
	group.raw[15] = n;
	return group;
}

/* Exactly as many groups as the device says can be had, and then again. */
enum verdict case_group_limit(void *context, int arg)
{
	struct bench *bench = context;
	uint32_t limit = bench->device->attr.max_mcast_grp;
	enum verdict verdict;
	struct party *party;
	union ibv_gid group;
	uint32_t n;
	int err;

	if (limit > 65536)
		return ktap_skip("%s claims %u groups: too many to open",
				 bench->device->name, limit);
	verdict = bench_party(bench, 0, CASE_FAMILY(arg), &party);
	if (verdict != PASS)
		return verdict;
	for (n = 0; n < limit; n++) {
		group = nth_group(n);
		err = node_attach(party->node, party->id, &group, 0);
		if (err)
			return ktap_fail("attach to group %u of %u: %s", n + 1,
					 limit, strerror(err));
	}
	group = nth_group(limit);
	verdict = bench_errno("attach to one group more than max_mcast_grp",
			      node_attach(party->node, party->id, &group, 0),
			      ENOMEM);
	if (verdict != PASS)
		return verdict;

	/* One given back makes room for one, again and again. */
	for (n = 0; n < 5; n++) {
		union ibv_gid freed = nth_group(n * 100 % limit);

		verdict = bench_detach(party, &freed);
		if (verdict == PASS)
			verdict = bench_attach(party, &group);
		if (verdict == PASS)
			verdict = bench_detach(party, &group);
		if (verdict == PASS)
			verdict = bench_attach(party, &freed);
		if (verdict != PASS)
			return verdict;
	}
	return PASS;
}

/* Judges all cases before it. */
enum verdict case_all_destroyed(void *context, int arg)
{
	struct bench *bench = context;

	(void)arg;
	if (bench->stuck)
		return ktap_fail("%u queue pairs could not be destroyed though detached",
				 bench->stuck);
	return PASS;
}
