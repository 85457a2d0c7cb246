// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <string.h>

#include "cases.h"

#define MAX_MEMBERS 8

/* A sender on the first node and @count attached members. */
static enum verdict gather(struct bench *bench, struct shot *shot,
			   enum family family, struct party **members,
			   unsigned int count, bool spread)
{
	enum verdict verdict;
	unsigned int i;

	memset(shot, 0, sizeof(*shot));
	shot->to = bench_group(bench, family);
	shot->length = 256;
	verdict = bench_party(bench, 0, family, &shot->sender);
	for (i = 0; i < count && verdict == PASS; i++) {
		/* Spread, the first member is on another node. */
		verdict = bench_party(bench, spread ? i + 1 : 0, family,
				      &members[i]);
		if (verdict == PASS)
			verdict = bench_attach(members[i], &shot->to);
	}
	return verdict;
}

static enum verdict expect_all(struct bench *bench, const struct shot *shot,
			       struct party **members, unsigned int count)
{
	enum verdict verdict = PASS;
	unsigned int i;

	for (i = 0; i < count && verdict == PASS; i++)
		verdict = bench_expect(bench, shot, members[i], 1);
	return verdict;
}

/* Members get a copy each; strangers on every node get none. */
static enum verdict members(struct bench *bench, int arg, bool spread)
{
	struct party *member[MAX_MEMBERS], *stranger[MAX_NODES];
	unsigned int count = CASE_NUMBER(arg), node;
	unsigned int nodes = spread ? bench->node_count : 1;
	enum verdict verdict;
	struct shot shot;

	verdict = gather(bench, &shot, CASE_FAMILY(arg), member, count, spread);
	for (node = 0; node < nodes && verdict == PASS; node++)
		verdict = bench_party(bench, node, CASE_FAMILY(arg),
				      &stranger[node]);
	if (verdict == PASS)
		verdict = bench_shoot(bench, &shot);
	if (verdict == PASS)
		verdict = expect_all(bench, &shot, member, count);
	for (node = 0; node < nodes && verdict == PASS; node++)
		verdict = bench_expect(bench, &shot, stranger[node], 0);
	if (verdict == PASS)
		verdict = bench_expect(bench, &shot, shot.sender, 0);
	return verdict;
}

enum verdict case_members_here(void *bench, int arg)
{
	return members(bench, arg, false);
}

enum verdict case_members_spread(void *bench, int arg)
{
	return members(bench, arg, true);
}

/* One member here and, with more nodes, one on another get @shot. */
static enum verdict near_and_far(struct bench *bench, enum family family,
				 const struct shot *model)
{
	struct party *member[2];
	unsigned int count = bench->node_count > 1 ? 2 : 1;
	enum verdict verdict;
	struct shot shot;

	verdict = gather(bench, &shot, family, member, count, true);
	shot.length = model->length;
	shot.count = model->count;
	shot.immediate = model->immediate;
	shot.has_immediate = model->has_immediate;
	shot.inlined = model->inlined;
	if (verdict == PASS)
		verdict = bench_shoot(bench, &shot);
	if (verdict == PASS)
		verdict = expect_all(bench, &shot, member, count);
	return verdict;
}

enum verdict case_size(void *bench, int arg)
{
	struct shot shot = { .length = CASE_NUMBER(arg) };

	return near_and_far(bench, CASE_FAMILY(arg), &shot);
}

enum verdict case_size_of_mtu(void *context, int arg)
{
	struct bench *bench = context;
	struct shot shot = { .length = device_mtu(bench->device) };

	return near_and_far(bench, CASE_FAMILY(arg), &shot);
}

/*
 * A UD message has one packet, so a longer one must not leave. IBA C10-93.1.1
 * asks for no error either, other devices fail the queue pair: both are
 * accepted here, a delivered part of it is not.
 */
enum verdict case_longer_than_mtu(void *context, int arg)
{
	struct bench *bench = context;
	struct party *member, *other;
	enum verdict verdict;
	struct shot shot;
	struct datagram datagram;

	verdict = gather(bench, &shot, CASE_FAMILY(arg), &member, 1, true);
	if (verdict == PASS)
		verdict = bench_party(bench, 0, CASE_FAMILY(arg), &other);
	if (verdict != PASS)
		return verdict;
	datagram = (struct datagram){
		.to = shot.to,
		.qpn = MULTICAST_QPN,
		.qkey = DEFAULT_QKEY,
		.length = device_mtu(bench->device) + 1,
	};
	if (node_send(shot.sender->node, shot.sender->id, &datagram, 1) ==
	    ETIMEDOUT)
		return ktap_fail("send %u bytes: no completion",
				 datagram.length);
	/* The first datagram the member sees is the next one sent. */
	shot.sender = other;
	verdict = bench_shoot(bench, &shot);
	return verdict == PASS ? bench_expect(bench, &shot, member, 1) :
				 verdict;
}

enum verdict case_immediate(void *bench, int arg)
{
	struct shot shot = {
		.length = 64,
		.immediate = 0x1badcafe,
		.has_immediate = true,
	};

	return near_and_far(bench, CASE_FAMILY(arg), &shot);
}

enum verdict case_inline(void *bench, int arg)
{
	struct shot shot = {
		.length = 40,
		.inlined = true,
	};

	return near_and_far(bench, CASE_FAMILY(arg), &shot);
}

enum verdict case_stream(void *context, int arg)
{
	struct bench *bench = context;
	uint32_t depth = 600;
	enum verdict verdict;
	struct party *member;
	struct shot shot = {
		.length = 512,
		.count = 500,
		.to = bench_group(bench, CASE_FAMILY(arg)),
	};

	verdict = bench_party(bench, 0, CASE_FAMILY(arg), &shot.sender);
	if (verdict == PASS)
		verdict = bench_party_with(bench, 1, CASE_FAMILY(arg),
					   DEFAULT_QKEY, depth, &member);
	if (verdict == PASS)
		verdict = bench_attach(member, &shot.to);
	if (verdict == PASS)
		verdict = bench_shoot(bench, &shot);
	return verdict == PASS ? bench_expect(bench, &shot, member, 1) :
				 verdict;
}

enum verdict case_sender_is_member(void *context, int arg)
{
	struct bench *bench = context;
	struct party *member[2];
	enum verdict verdict;
	struct shot shot;

	verdict = gather(bench, &shot, CASE_FAMILY(arg), member, 2, true);
	if (verdict == PASS)
		verdict = bench_attach(shot.sender, &shot.to);
	if (verdict == PASS)
		verdict = bench_shoot(bench, &shot);
	if (verdict == PASS)
		verdict = expect_all(bench, &shot, member, 2);
	return verdict == PASS ? bench_expect(bench, &shot, shot.sender, 1) :
				 verdict;
}

enum verdict case_two_groups(void *context, int arg)
{
	struct bench *bench = context;
	struct party *both, *first;
	enum verdict verdict;
	struct shot shot, second;

	verdict = gather(bench, &shot, CASE_FAMILY(arg), &both, 1, true);
	if (verdict != PASS)
		return verdict;
	second = shot;
	second.to = bench_group(bench, CASE_FAMILY(arg));
	verdict = bench_attach(both, &second.to);
	if (verdict == PASS)
		verdict = bench_party(bench, 1, CASE_FAMILY(arg), &first);
	if (verdict == PASS)
		verdict = bench_attach(first, &shot.to);

	if (verdict == PASS)
		verdict = bench_shoot(bench, &shot);
	if (verdict == PASS)
		verdict = bench_expect(bench, &shot, both, 1);
	if (verdict == PASS)
		verdict = bench_expect(bench, &shot, first, 1);

	if (verdict == PASS)
		verdict = bench_shoot(bench, &second);
	if (verdict == PASS)
		verdict = bench_expect(bench, &second, both, 1);
	if (verdict == PASS)
		verdict = bench_expect(bench, &second, first, 0);
	return verdict;
}

enum verdict case_wrong_qkey(void *context, int arg)
{
	struct bench *bench = context;
	struct party *member[2], *other;
	enum verdict verdict;
	struct shot shot;

	verdict = gather(bench, &shot, CASE_FAMILY(arg), member, 2, true);
	if (verdict == PASS)
		verdict = bench_party_with(bench, 1, CASE_FAMILY(arg),
					   DEFAULT_QKEY + 1, DEFAULT_DEPTH,
					   &other);
	if (verdict == PASS)
		verdict = bench_attach(other, &shot.to);
	if (verdict == PASS)
		verdict = bench_shoot(bench, &shot);
	if (verdict == PASS)
		verdict = expect_all(bench, &shot, member, 2);
	return verdict == PASS ? bench_expect(bench, &shot, other, 0) :
				 verdict;
}

/* A member without a receive posted loses its copy, and only that one. */
enum verdict case_no_receive(void *context, int arg)
{
	struct bench *bench = context;
	struct party *member, *small;
	enum verdict verdict;
	struct shot shot;
	int err;

	verdict = gather(bench, &shot, CASE_FAMILY(arg), &member, 1, true);
	if (verdict == PASS)
		verdict = bench_party_with(bench, 1, CASE_FAMILY(arg),
					   DEFAULT_QKEY, 4, &small);
	if (verdict == PASS)
		verdict = bench_attach(small, &shot.to);
	if (verdict != PASS)
		return verdict;

	shot.count = 6;
	verdict = bench_shoot(bench, &shot);
	if (verdict == PASS)
		verdict = bench_expect(bench, &shot, member, 1);
	if (verdict != PASS)
		return verdict;

	/* Four receives took the first four; the marker needs a fifth. */
	{
		struct shot first = shot;
		const struct received *received;
		uint32_t count;

		err = node_collect(small->node, small->id, 0, 100, &received,
				   &count);
		if (err != ETIMEDOUT || count != 4)
			return ktap_fail("QP %u with 4 receives got %u datagrams (%s)",
					 small->qpn, count, strerror(err));
		first.count = 1;
		verdict = bench_shoot(bench, &first);
		return verdict == PASS ?
			       bench_expect(bench, &first, small, 1) : verdict;
	}
}

enum verdict case_member_in_error(void *context, int arg)
{
	struct bench *bench = context;
	struct party *member[4];
	enum verdict verdict;
	struct shot shot;
	int err;

	verdict = gather(bench, &shot, CASE_FAMILY(arg), member, 4, true);
	if (verdict != PASS)
		return verdict;
	err = node_fail(member[0]->node, member[0]->id);
	if (err)
		return ktap_fail("modify QP %u to ERR: %s", member[0]->qpn,
				 strerror(err));
	verdict = bench_shoot(bench, &shot);
	return verdict == PASS ? expect_all(bench, &shot, &member[1], 3) :
				 verdict;
}
