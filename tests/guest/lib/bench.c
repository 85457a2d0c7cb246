// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "payload.h"

union ibv_gid bench_group(struct bench *bench, enum family family)
{
	char text[64];
	union ibv_gid group;
	uint32_t n = ++bench->next_group;

	if (family == IPV4)
		snprintf(text, sizeof(text), "239.129.%u.%u", n >> 8 & 0xff,
			 n & 0xff);
	else
		snprintf(text, sizeof(text), "ff0e::4d:%x", n);
	gid_parse(text, &group);
	return group;
}

enum verdict bench_party_with(struct bench *bench, unsigned int node,
			      enum family family, uint32_t qkey,
			      uint32_t depth, struct party **out)
{
	struct party *party;
	int err;

	node %= bench->node_count;
	if (bench->party_count == MAX_PARTIES)
		return ktap_fail("open party: the bench has room for %d",
				 MAX_PARTIES);
	party = &bench->parties[bench->party_count];
	party->node = &bench->nodes[node];
	party->family = family;
	party->qkey = qkey;
	/* A number may still be taken by a queue pair that could not go. */
	do {
		party->id = bench->next_id[node]++;
		err = node_open(party->node, party->id, family, qkey, depth,
				&party->qpn);
	} while (err == EEXIST);
	if (err)
		return ktap_fail("open endpoint %u on node %u: %s", party->id,
				 node, strerror(err));
	bench->party_count++;
	*out = party;
	return PASS;
}

enum verdict bench_party(struct bench *bench, unsigned int node,
			 enum family family, struct party **party)
{
	return bench_party_with(bench, node, family, DEFAULT_QKEY,
				DEFAULT_DEPTH, party);
}

enum verdict bench_errno(const char *action, int err, int want)
{
	if (err == want)
		return PASS;
	return ktap_fail("%s gives \"%s\", not \"%s\"", action,
			 err ? strerror(err) : "success",
			 want ? strerror(want) : "success");
}

enum verdict bench_attach(struct party *party, const union ibv_gid *group)
{
	char action[96];

	snprintf(action, sizeof(action), "attach QP %u to %s", party->qpn,
		 gid_text(group));
	return bench_errno(action, node_attach(party->node, party->id, group, 0),
			   0);
}

enum verdict bench_detach(struct party *party, const union ibv_gid *group)
{
	char action[96];

	snprintf(action, sizeof(action), "detach QP %u from %s", party->qpn,
		 gid_text(group));
	return bench_errno(action, node_detach(party->node, party->id, group, 0),
			   0);
}

enum verdict bench_shoot(struct bench *bench, struct shot *shot)
{
	struct datagram datagram = {
		.to = shot->to,
		.qpn = shot->qpn ? shot->qpn : MULTICAST_QPN,
		.qkey = DEFAULT_QKEY,
		.length = shot->length,
		.immediate = shot->immediate,
		.has_immediate = shot->has_immediate,
		.inlined = shot->inlined,
	};
	int err;

	if (!shot->count)
		shot->count = 1;
	shot->first_token = bench->next_token;
	bench->next_token += shot->count;
	datagram.token = shot->first_token;
	err = node_send(shot->sender->node, shot->sender->id, &datagram,
			shot->count);
	if (err)
		return ktap_fail("send %u x %u bytes to %s: %s", shot->count,
				 shot->length, gid_text(&shot->to),
				 strerror(err));
	return PASS;
}

/* The token that a receiver reads out of a payload of @length bytes. */
static uint32_t readable_token(uint32_t token, uint32_t length)
{
	if (length >= TOKEN_BYTES)
		return token;
	return length ? payload_byte(token, 0) : 0;
}

static enum verdict judge(const struct shot *shot, const struct party *party,
			  const struct received *got, uint32_t token)
{
	const union ibv_gid *source = node_gid(shot->sender->node,
					       shot->sender->family);
	uint32_t want = readable_token(token, shot->length);

	if (got->length != shot->length)
		return ktap_fail("QP %u got %u payload bytes, %u were sent",
				 party->qpn, got->length, shot->length);
	if (got->token != want)
		return ktap_fail("QP %u got datagram %u, %u is next",
				 party->qpn, got->token, want);
	if (!got->intact)
		return ktap_fail("QP %u got datagram %u with a changed payload",
				 party->qpn, token);
	if (!got->grh)
		return ktap_fail("QP %u: completion without IBV_WC_GRH",
				 party->qpn);
	if (got->source_qpn != shot->sender->qpn)
		return ktap_fail("QP %u: source QP is %u, not %u", party->qpn,
				 got->source_qpn, shot->sender->qpn);
	if (got->has_immediate != shot->has_immediate ||
	    got->immediate != (shot->has_immediate ? shot->immediate : 0))
		return ktap_fail("QP %u: immediate data %s 0x%08x, sent %s 0x%08x",
				 party->qpn, got->has_immediate ? "yes" : "no",
				 got->immediate,
				 shot->has_immediate ? "yes" : "no",
				 shot->immediate);
	if (got->header.fault[0])
		return ktap_fail("QP %u: %s", party->qpn, got->header.fault);
	if (memcmp(&got->header.destination, &shot->to,
		   sizeof(shot->to)))
		return ktap_fail("QP %u: header names destination %s, not %s",
				 party->qpn,
				 gid_text(&got->header.destination),
				 gid_text(&shot->to));
	if (memcmp(&got->header.source, source, sizeof(*source)))
		return ktap_fail("QP %u: header names source %s, not %s",
				 party->qpn, gid_text(&got->header.source),
				 gid_text(source));
	return PASS;
}

/* What @party got up to what @sender has sent by now. */
static enum verdict gather(struct bench *bench, const struct party *sender,
			   struct party *party,
			   const struct received **received, uint32_t *count)
{
	struct datagram marker = {
		.to = *node_gid(party->node, party->family),
		.qpn = party->qpn,
		.qkey = party->qkey,
		.length = TOKEN_BYTES,
		.token = bench->next_token++,
		.marker = true,
	};
	int err;

	err = node_send(sender->node, sender->id, &marker, 1);
	if (err)
		return ktap_fail("send marker to QP %u: %s", party->qpn,
				 strerror(err));
	err = node_collect(party->node, party->id, marker.token, WAIT_MS,
			   received, count);
	if (err)
		return ktap_fail("QP %u, %u datagrams in: wait for marker: %s",
				 party->qpn, *count, strerror(err));
	return PASS;
}

enum verdict bench_drain(struct bench *bench, const struct party *sender,
			 struct party *party)
{
	const struct received *received;
	uint32_t count;

	return gather(bench, sender, party, &received, &count);
}

enum verdict bench_expect(struct bench *bench, const struct shot *shot,
			  struct party *party, uint32_t copies)
{
	const struct received *received;
	enum verdict verdict;
	uint32_t count, i;

	verdict = gather(bench, shot->sender, party, &received, &count);
	if (verdict != PASS)
		return verdict;
	if (count != shot->count * copies)
		return ktap_fail("QP %u got %u datagrams, %u were due",
				 party->qpn, count, shot->count * copies);
	for (i = 0; i < count && verdict == PASS; i++)
		verdict = judge(shot, party, &received[i],
				shot->first_token + i / copies);
	return verdict;
}

enum verdict bench_device_has(const union ibv_gid *group,
			      struct party *const *members, unsigned int count)
{
	char text[2][MAC_TEXT];
	unsigned char mac[6];
	struct nic_group seen;
	unsigned int i, j;
	int err = nic_group(group, &seen);

	if (err)
		return ktap_fail("ask the device for %s: %s", gid_text(group),
				 strerror(err));
	if (seen.present != !!count || seen.members != count)
		return ktap_fail("device lists %s with %u members, not %u",
				 gid_text(group), seen.members, count);
	for (i = 0; i < count; i++) {
		for (j = 0; j < count; j++)
			if (seen.qpn[j] == members[i]->qpn)
				break;
		if (j == count)
			return ktap_fail("device does not list QP %u in %s",
					 members[i]->qpn, gid_text(group));
	}
	gid_multicast_mac(group, mac);
	if (count && memcmp(mac, seen.mac, sizeof(mac)))
		return ktap_fail("device has %s at %s, the standard says %s",
				 gid_text(group), mac_text(seen.mac, text[0]),
				 mac_text(mac, text[1]));
	return PASS;
}

void bench_clear(struct bench *bench)
{
	unsigned int i;

	for (i = 0; i < bench->party_count; i++) {
		struct party *party = &bench->parties[i];
		int err = node_clear(party->node, party->id);

		/* A case may have destroyed it itself. */
		if (!err || err == ENOENT)
			continue;
		ktap_note("destroy QP %u after the case: %s", party->qpn,
			  strerror(err));
		bench->stuck++;
	}
	bench->party_count = 0;
	memset(bench->next_id, 0, sizeof(bench->next_id));
}
