// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <string.h>

#include "cases.h"

#define MEMBERS 8
#define BURST 100
/* Room for a burst and its marker. */
#define DEPTH 128

enum bad {
	BAD_STATE,
	BAD_QKEY,
	BAD_RECEIVES,
};

/* The place among the members that is bad in this way. */
static const unsigned int bad_place[] = { 0, 3, 7 };

/* Receives that member BAD_RECEIVES has. */
#define FEW 4

static enum verdict gather(struct bench *bench, struct shot *shot,
			   enum family family, enum bad bad,
			   struct party **member)
{
	enum verdict verdict;
	unsigned int i;

	*shot = (struct shot){
		.to = bench_group(bench, family),
		.length = 300,
		.count = BURST,
	};
	verdict = bench_party(bench, 0, family, &shot->sender);
	for (i = 0; i < MEMBERS && verdict == PASS; i++) {
		bool odd = i == bad_place[bad];

		verdict = bench_party_with(bench, i, family,
					   DEFAULT_QKEY + (odd && bad == BAD_QKEY),
					   odd && bad == BAD_RECEIVES ? FEW : DEPTH,
					   &member[i]);
		if (verdict == PASS)
			verdict = bench_attach(member[i], &shot->to);
	}
	return verdict;
}

/* What the bad member got of the first burst. */
static enum verdict judge_bad(struct bench *bench, const struct shot *shot,
			      enum bad bad, struct party *member)
{
	const struct received *received;
	uint32_t count;
	int err;

	switch (bad) {
	case BAD_QKEY:
		return bench_expect(bench, shot, member, 0);
	case BAD_RECEIVES:
		/* All is delivered by now, and there is no room for a marker. */
		err = node_collect(member->node, member->id, 0, 0, &received,
				   &count);
		if (err != ETIMEDOUT || count != FEW)
			return ktap_fail("QP %u with %u receives got %u datagrams (%s)",
					 member->qpn, FEW, count, strerror(err));
		return PASS;
	default:
		return PASS;
	}
}

/* A member in trouble loses its own copies; the others' are intact. */
enum verdict case_bad_member(void *context, int arg)
{
	enum bad bad = CASE_NUMBER(arg);
	unsigned int place = bad_place[bad], burst, i;
	struct party *member[MEMBERS];
	struct bench *bench = context;
	enum verdict verdict;
	struct shot shot;

	verdict = gather(bench, &shot, CASE_FAMILY(arg), bad, member);
	if (verdict == PASS && bad == BAD_STATE)
		verdict = bench_errno("modify a member to ERR",
				      node_fail(member[place]->node,
						member[place]->id), 0);
	for (burst = 0; burst < bench->bursts && verdict == PASS; burst++) {
		verdict = bench_shoot(bench, &shot);
		for (i = 0; i < MEMBERS && verdict == PASS; i++)
			if (i != place)
				verdict = bench_expect(bench, &shot, member[i],
						       1);
		/* Collecting gives its receives back: once is enough. */
		if (verdict == PASS && (!burst || bad == BAD_QKEY))
			verdict = judge_bad(bench, &shot, bad, member[place]);
	}
	return verdict;
}

/*
 * The root of a collective: it only sends, the members attach without more ado,
 * and the first datagram follows the last attach. Addresses that differ in a
 * single bit would show a slip in the order of octets.
 */
enum verdict case_one_bit_groups(void *context, int arg)
{
	enum family family = CASE_FAMILY(arg);
	unsigned int bits = family == IPV4 ? 24 : 64, bit, i;
	struct bench *bench = context;
	struct party *member[3];
	enum verdict verdict;
	struct shot shot = { .length = 64 };

	verdict = bench_party(bench, 0, family, &shot.sender);
	for (i = 0; i < 3 && verdict == PASS; i++)
		verdict = bench_party(bench, i + 1, family, &member[i]);
	for (bit = 0; bit < bits && verdict == PASS; bit++) {
		gid_parse(family == IPV4 ? "239.0.0.0" : "ff0e::", &shot.to);
		shot.to.raw[15 - bit / 8] |= (uint8_t)(1 << bit % 8);
		for (i = 0; i < 3 && verdict == PASS; i++)
			verdict = bench_attach(member[i], &shot.to);
		if (verdict == PASS)
			verdict = bench_shoot(bench, &shot);
		for (i = 0; i < 3 && verdict == PASS; i++)
			verdict = bench_expect(bench, &shot, member[i], 1);
		for (i = 0; i < 3 && verdict == PASS; i++)
			verdict = bench_detach(member[i], &shot.to);
	}
	return verdict;
}

static long on_the_wire(enum family family)
{
	return nic_number("counters", family == IPV4 ?
			  "rdma.tx_ipv4.multicast_packets" :
			  "rdma.tx_ipv6.multicast_packets");
}

/* Own members are served inside the device, and the wire carries one copy. */
enum verdict case_once_on_the_wire(void *context, int arg)
{
	enum family family = CASE_FAMILY(arg);
	struct bench *bench = context;
	struct party *member[3];
	enum verdict verdict;
	struct shot shot = { .length = 200, .count = 20 };
	unsigned int i;
	long before;

	shot.to = bench_group(bench, family);
	verdict = bench_party(bench, 0, family, &shot.sender);
	if (verdict == PASS)
		verdict = bench_attach(shot.sender, &shot.to);
	for (i = 0; i < 3 && verdict == PASS; i++) {
		verdict = bench_party(bench, i < 2 ? 0 : 1, family, &member[i]);
		if (verdict == PASS)
			verdict = bench_attach(member[i], &shot.to);
	}
	if (verdict != PASS)
		return verdict;
	before = on_the_wire(family);
	verdict = bench_shoot(bench, &shot);
	for (i = 0; i < 3 && verdict == PASS; i++)
		verdict = bench_expect(bench, &shot, member[i], 1);
	if (verdict == PASS)
		verdict = bench_expect(bench, &shot, shot.sender, 1);
	if (verdict == PASS && nic_available() &&
	    on_the_wire(family) - before != shot.count)
		verdict = ktap_fail("%u datagrams made %ld multicast packets",
				    shot.count, on_the_wire(family) - before);
	return verdict;
}
