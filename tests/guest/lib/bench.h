/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What test programs share: the nodes, and parties (endpoints on
 * them) that send, receive and are judged.
 *
 * A step that goes wrong states why with ktap_fail() and gives FAIL, so cases
 * chain steps with || and return the first one's verdict.
 */
#ifndef GUEST_BENCH_H
#define GUEST_BENCH_H

#include "ktap.h"
#include "nic.h"
#include "node.h"

#define MAX_NODES 4
#define MAX_PARTIES 32

struct party {
	struct node *node;
	uint32_t id;
	uint32_t qpn;
	uint32_t qkey;
	enum family family;
};

struct bench {
	struct device *device;
	struct node nodes[MAX_NODES];
	unsigned int node_count;
	struct party parties[MAX_PARTIES];
	unsigned int party_count;
	uint32_t next_id[MAX_NODES];
	uint32_t next_token;
	uint32_t next_group;
	unsigned int bursts;	/* how often cases that repeat themselves do so */
	unsigned int stuck;	/* queue pairs that could not be destroyed */
};

/* The plan of one delivery: what is sent, and what each party must get. */
struct shot {
	struct party *sender;
	union ibv_gid to;
	uint32_t qpn;		/* 0 for a group */
	uint32_t length;
	uint32_t count;
	uint32_t immediate;
	bool has_immediate;
	bool inlined;
	uint32_t first_token;	/* set by bench_shoot() */
};

/* A group no earlier case used. */
union ibv_gid bench_group(struct bench *bench, enum family family);

/* A new party on node number @node (modulo the nodes there are). */
enum verdict bench_party(struct bench *bench, unsigned int node,
			 enum family family, struct party **party);
enum verdict bench_party_with(struct bench *bench, unsigned int node,
			      enum family family, uint32_t qkey,
			      uint32_t depth, struct party **party);

enum verdict bench_attach(struct party *party, const union ibv_gid *group);
enum verdict bench_detach(struct party *party, const union ibv_gid *group);

/* Checks that @err, what @action of a party gave, is @want. */
enum verdict bench_errno(const char *action, int err, int want);

enum verdict bench_shoot(struct bench *bench, struct shot *shot);

/*
 * Checks that @party got @copies copies of each datagram of @shot, all of them
 * right in every byte and field, and nothing else since it was last asked.
 */
enum verdict bench_expect(struct bench *bench, const struct shot *shot,
			  struct party *party, uint32_t copies);

/* Throws away what @party got, up to what @sender has sent by now. */
enum verdict bench_drain(struct bench *bench, const struct party *sender,
			 struct party *party);

/*
 * Checks that the virtual card lists @group with exactly the queue pairs of
 * @members, and with the MAC of the standards.
 */
enum verdict bench_device_has(const union ibv_gid *group,
			      struct party *const *members, unsigned int count);

/* Closes all parties, attached or not, for the next case. */
void bench_clear(struct bench *bench);

#endif
