// SPDX-License-Identifier: GPL-2.0
/*
 * Once attach has returned, the device delivers the very next datagram: it is
 * sent at once, time and again, and none may be missing. After detach none comes.
 */
#include <string.h>

#include "cases.h"

/* Each sender has an address handle to its group ready. */
#define SENDERS 8
#define LOOK_EVERY 50

enum verdict case_first_datagram(void *context, int arg)
{
	struct race *race = context;
	struct bench *bench = &race->bench;
	struct shot shot[SENDERS];
	enum verdict verdict;
	struct party *member;
	unsigned int i, round;

	(void)arg;
	verdict = bench_party(bench, 0, IPV4, &member);
	for (i = 0; i < SENDERS && verdict == PASS; i++) {
		shot[i] = (struct shot){
			.to = bench_group(bench, IPV4),
			.length = 64,
		};
		verdict = bench_party(bench, 0, IPV4, &shot[i].sender);
	}
	for (round = 0; round < race->rounds && verdict == PASS; round++) {
		struct shot *now = &shot[round % SENDERS];
		struct received got;
		uint32_t count;
		int err;

		verdict = bench_attach(member, &now->to);
		if (verdict == PASS)
			verdict = bench_shoot(bench, now);
		if (verdict != PASS)
			break;
		if (!(round % LOOK_EVERY)) {
			verdict = bench_expect(bench, now, member, 1);
		} else {
			err = endpoint_receive(&member->node->endpoints[member->id],
					       WAIT_MS, &got, 1, &count);
			if (err || got.token != now->first_token ||
			    !got.intact)
				verdict = ktap_fail("round %u of %u: datagram sent after attach: %s",
						    round + 1, race->rounds,
						    err ? strerror(err) :
							  "another came");
		}
		if (verdict == PASS)
			verdict = bench_detach(member, &now->to);
		if (verdict == PASS && !(round % LOOK_EVERY)) {
			verdict = bench_shoot(bench, now);
			if (verdict == PASS)
				verdict = bench_expect(bench, now, member, 0);
		}
	}
	return verdict;
}
