// SPDX-License-Identifier: GPL-2.0
/*
 * Threads attach to and detach from a few groups in an order of their own, so
 * that groups come, grow, shrink and go while others do the same to them.
 */
#include <string.h>

#include "cases.h"

#define GROUPS 3
/* Which MODIFY fails, again and again. */
#define FAIL_EVERY 3
#define FAILURES 60

struct plan {
	struct race *race;
	struct party *member[TEAM_MAX];
	union ibv_gid group[GROUPS];
	bool in[TEAM_MAX][GROUPS];
	bool failing;		/* attach may be refused */
};

static int change(struct plan *plan, unsigned int index, unsigned int which)
{
	struct party *me = plan->member[index];
	bool *in = &plan->in[index][which];
	int err;

	if (*in) {
		err = node_detach(me->node, me->id, &plan->group[which], 0);
		*in = false;
		return err;
	}
	err = node_attach(me->node, me->id, &plan->group[which], 0);
	*in = !err;
	return plan->failing ? 0 : err;
}

static int storm(struct team *team, unsigned int index)
{
	struct plan *plan = team->context;
	unsigned int state = index + 1, step;
	int err = 0;

	for (step = 0; step < 4 * plan->race->rounds; step++) {
		int failed = change(plan, index, team_random(&state) % GROUPS);

		err = err ? err : failed;
	}
	return err;
}

/* In the device each group has the members that its threads left in it. */
static enum verdict compare(struct plan *plan, unsigned int threads)
{
	unsigned int which, i;

	for (which = 0; which < GROUPS; which++) {
		struct party *members[TEAM_MAX];
		unsigned int count = 0;
		enum verdict verdict;

		for (i = 0; i < threads; i++)
			if (plan->in[i][which])
				members[count++] = plan->member[i];
		verdict = holds_exactly(&plan->group[which], members, count);
		if (verdict == PASS && count)
			verdict = all_receive(&plan->race->bench,
					      &plan->group[which], members,
					      count);
		if (verdict != PASS)
			return verdict;
	}
	return PASS;
}

static enum verdict prepare(struct plan *plan, unsigned int threads)
{
	struct bench *bench = &plan->race->bench;
	enum verdict verdict = PASS;
	unsigned int i;

	for (i = 0; i < GROUPS; i++)
		plan->group[i] = bench_group(bench, IPV4);
	for (i = 0; i < threads && verdict == PASS; i++)
		verdict = bench_party(bench, 0, IPV4, &plan->member[i]);
	return verdict;
}

enum verdict case_storm(void *context, int arg)
{
	struct plan plan = { .race = context };
	unsigned int threads = (unsigned int)arg;
	enum verdict verdict = prepare(&plan, threads);
	struct team team;

	if (verdict != PASS)
		return verdict;
	team_run(&team, threads, storm, &plan);
	if (team_error(&team))
		return ktap_fail("attach or detach of one of %u threads: %s",
				 threads, strerror(team_error(&team)));
	return compare(&plan, threads);
}

/*
 * Attaches fail, detaches never do. When the device obeys again, what the
 * threads left behind can be used and given back.
 */
enum verdict case_storm_failing(void *context, int arg)
{
	struct plan plan = { .race = context, .failing = true };
	unsigned int threads = (unsigned int)arg, which;
	enum verdict verdict;
	struct team team;
	int err;

	if (!nic_available())
		return ktap_skip("no virtual card that could be made to fail");
	verdict = prepare(&plan, threads);
	if (verdict != PASS)
		return verdict;
	err = nic_faults("MODIFY_MCAST_GRP", FAIL_EVERY, FAILURES, "fail");
	if (!err)
		team_run(&team, threads, storm, &plan);
	nic_faults_clear();
	if (err)
		return ktap_fail("have operations fail: %s", strerror(err));
	if (team_error(&team))
		return ktap_fail("detach of one of %u threads: %s", threads,
				 strerror(team_error(&team)));

	/* One more change to each group makes up for a refused one before it. */
	for (which = 0; which < GROUPS; which++) {
		struct party *other;

		verdict = bench_party(&plan.race->bench, 0, IPV4, &other);
		if (verdict == PASS)
			verdict = bench_attach(other, &plan.group[which]);
		if (verdict == PASS)
			verdict = bench_detach(other, &plan.group[which]);
		if (verdict != PASS)
			return verdict;
	}
	return compare(&plan, threads);
}
