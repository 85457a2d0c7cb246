// SPDX-License-Identifier: GPL-2.0
/*
 * Threads attach to a group that has a member already: whatever the order, the
 * device ends up with all of them.
 */
#include <poll.h>
#include <string.h>

#include "cases.h"

#define LOOK_EVERY 25
#define LATECOMERS 3

struct plan {
	struct race *race;
	/* The first is a member all the time. */
	struct party *member[1 + LATECOMERS];
	union ibv_gid group;
	enum verdict verdict;
};

static int join_and_leave(struct team *team, unsigned int index)
{
	struct plan *plan = team->context;
	struct party *me = plan->member[1 + index];
	unsigned int round;
	int err = 0;

	for (round = 0; round < plan->race->rounds; round++) {
		int failed;

		team_meet(team);
		failed = node_attach(me->node, me->id, &plan->group, 0);
		err = err ? err : failed;
		team_meet(team);
		if (!index && plan->verdict == PASS && !(round % LOOK_EVERY))
			plan->verdict = holds_exactly(&plan->group,
						      plan->member,
						      1 + LATECOMERS);
		team_meet(team);
		failed = node_detach(me->node, me->id, &plan->group, 0);
		err = err ? err : failed;
		team_meet(team);
		if (!index && plan->verdict == PASS && !(round % LOOK_EVERY))
			plan->verdict = holds_exactly(&plan->group,
						      plan->member, 1);
	}
	return err;
}

static enum verdict prepare(struct plan *plan)
{
	struct bench *bench = &plan->race->bench;
	enum verdict verdict = PASS;
	unsigned int i;

	plan->group = bench_group(bench, IPV4);
	for (i = 0; i <= LATECOMERS && verdict == PASS; i++)
		verdict = bench_party(bench, 0, IPV4, &plan->member[i]);
	return verdict == PASS ? bench_attach(plan->member[0], &plan->group) :
				 verdict;
}

enum verdict case_join_together(void *context, int arg)
{
	struct plan plan = { .race = context };
	enum verdict verdict = prepare(&plan);
	struct team team;

	(void)arg;
	if (verdict != PASS)
		return verdict;
	team_run(&team, LATECOMERS, join_and_leave, &plan);
	if (plan.verdict != PASS)
		return plan.verdict;
	if (team_error(&team))
		return ktap_fail("attach or detach of one of %u threads: %s",
				 LATECOMERS, strerror(team_error(&team)));
	return PASS;
}

/* Attaches, but for the last thread: it lets the device go on. */
static int join_slowly(struct team *team, unsigned int index)
{
	struct plan *plan = team->context;
	struct party *me;
	int try;

	if (index < LATECOMERS) {
		me = plan->member[1 + index];
		return node_attach(me->node, me->id, &plan->group, 0);
	}
	while (nic_objects("cqp_pending") == 0)
		poll(NULL, 0, 1);
	/* The others are behind it, or ask as well: give those a chance to. */
	for (try = 0; try < 20 && nic_objects("cqp_pending") < LATECOMERS; try++)
		poll(NULL, 0, 1);
	return nic_release();
}

enum verdict case_join_slow_device(void *context, int arg)
{
	struct plan plan = { .race = context };
	enum verdict verdict;
	struct team team;
	int err, round;

	(void)arg;
	if (!nic_available())
		return ktap_skip("no virtual card that could be made slow");
	verdict = prepare(&plan);
	for (round = 0; round < 20 && verdict == PASS; round++) {
		int i;

		err = nic_fault("MODIFY_MCAST_GRP", "delay");
		if (err)
			return ktap_fail("make the device slow: %s",
					 strerror(err));
		team_run(&team, LATECOMERS + 1, join_slowly, &plan);
		nic_faults_clear();
		if (team_error(&team))
			return ktap_fail("attach of one of %u threads: %s",
					 LATECOMERS,
					 strerror(team_error(&team)));
		verdict = holds_exactly(&plan.group, plan.member,
					1 + LATECOMERS);
		if (verdict == PASS && !round)
			verdict = all_receive(&plan.race->bench, &plan.group,
					      plan.member, 1 + LATECOMERS);
		for (i = 1; i <= LATECOMERS && verdict == PASS; i++)
			verdict = bench_detach(plan.member[i], &plan.group);
	}
	return verdict;
}
