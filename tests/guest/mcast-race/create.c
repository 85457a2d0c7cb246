// SPDX-License-Identifier: GPL-2.0
/*
 * Several threads attach to a group that does not exist yet: it is to be made
 * once, with all of them in it.
 */
#include <string.h>

#include "cases.h"

/* In so many rounds one has the device's list of members compared. */
#define LOOK_EVERY 25

struct plan {
	struct race *race;
	struct party *member[TEAM_MAX];
	union ibv_gid group;	/* of this round */
	enum verdict verdict;	/* the first thread's */
};

/* Thread 0, while the others wait: what has become of this round's group. */
static void look(struct plan *plan, unsigned int round, unsigned int members)
{
	if (plan->verdict != PASS || round % LOOK_EVERY)
		return;
	plan->verdict = holds_exactly(&plan->group, plan->member, members);
}

static int attach_and_detach(struct team *team, unsigned int index)
{
	struct plan *plan = team->context;
	struct party *me = plan->member[index];
	unsigned int round;
	int err = 0;

	for (round = 0; round < plan->race->rounds; round++) {
		union ibv_gid group;
		int failed;

		if (!index)
			plan->group = bench_group(&plan->race->bench, IPV4);
		team_meet(team);
		group = plan->group;
		failed = node_attach(me->node, me->id, &group, 0);
		err = err ? err : failed;
		team_meet(team);
		if (!index)
			look(plan, round, team->size);
		team_meet(team);
		failed = node_detach(me->node, me->id, &group, 0);
		err = err ? err : failed;
	}
	return err;
}

enum verdict case_create_together(void *context, int arg)
{
	struct plan plan = { .race = context };
	struct bench *bench = &plan.race->bench;
	unsigned int i, count = (unsigned int)arg;
	long before = nic_operations("CREATE_MCAST_GRP"), made;
	enum verdict verdict = PASS;
	struct team team;

	for (i = 0; i < count && verdict == PASS; i++)
		verdict = bench_party(bench, 0, IPV4, &plan.member[i]);
	if (verdict != PASS)
		return verdict;
	team_run(&team, count, attach_and_detach, &plan);
	if (plan.verdict != PASS)
		return plan.verdict;
	if (team_error(&team))
		return ktap_fail("attach or detach of one of %u threads: %s",
				 count, strerror(team_error(&team)));
	made = nic_operations("CREATE_MCAST_GRP") - before;
	if (nic_available() && made != (long)plan.race->rounds)
		return ktap_fail("%ld groups were made in the device for %u addresses",
				 made, plan.race->rounds);
	/* Once more, to be heard. */
	plan.group = bench_group(bench, IPV4);
	for (i = 0; i < count && verdict == PASS; i++)
		verdict = bench_attach(plan.member[i], &plan.group);
	return verdict == PASS ? all_receive(bench, &plan.group, plan.member,
					     count) : verdict;
}
