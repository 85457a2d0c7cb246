// SPDX-License-Identifier: GPL-2.0
/*
 * The device refuses to make a group: nothing is left of it, and the next
 * attach works.
 */
#include <errno.h>
#include <string.h>

#include "cases.h"

struct plan {
	struct party *member[TEAM_MAX];
	union ibv_gid group;
};

static enum verdict prepare(struct race *race, struct plan *plan,
			    unsigned int count)
{
	enum verdict verdict = PASS;
	unsigned int i;
	int err;

	if (!nic_available())
		return ktap_skip("no virtual card that could be made to fail");
	plan->group = bench_group(&race->bench, IPV4);
	for (i = 0; i < count && verdict == PASS; i++)
		verdict = bench_party(&race->bench, 0, IPV4, &plan->member[i]);
	err = nic_fault("CREATE_MCAST_GRP", "fail");
	if (verdict == PASS && err)
		verdict = ktap_fail("have the next CREATE fail: %s",
				    strerror(err));
	return verdict;
}

enum verdict case_create_refused(void *context, int arg)
{
	struct race *race = context;
	struct plan plan;
	enum verdict verdict = prepare(race, &plan, 1);
	int err;

	(void)arg;
	if (verdict != PASS)
		return verdict;
	err = node_attach(plan.member[0]->node, plan.member[0]->id, &plan.group,
			  0);
	nic_faults_clear();
	if (!err)
		return ktap_fail("attach succeeds though the device refused");
	if (err == ENOMEM || err == ETIMEDOUT)
		return ktap_fail("attach that the device refused gives \"%s\"",
				 strerror(err));
	verdict = holds_exactly(&plan.group, NULL, 0);
	if (verdict == PASS)
		verdict = bench_errno("detach after a refused attach",
				      node_detach(plan.member[0]->node,
						  plan.member[0]->id,
						  &plan.group, 0), EINVAL);
	if (verdict == PASS)
		verdict = bench_attach(plan.member[0], &plan.group);
	if (verdict == PASS)
		verdict = holds_exactly(&plan.group, plan.member, 1);
	return verdict == PASS ? all_receive(&race->bench, &plan.group,
					     plan.member, 1) : verdict;
}

static int attach(struct team *team, unsigned int index)
{
	struct plan *plan = team->context;

	return node_attach(plan->member[index]->node, plan->member[index]->id,
			   &plan->group, 0);
}

/* Whoever is told 0 is in the device, whoever is told an error is not. */
enum verdict case_create_refused_together(void *context, int arg)
{
	unsigned int round, i, count = (unsigned int)arg;
	struct race *race = context;
	enum verdict verdict = PASS;

	for (round = 0; round < 20 && verdict == PASS; round++) {
		struct party *in[TEAM_MAX];
		unsigned int attached = 0;
		struct plan plan;
		struct team team;

		verdict = prepare(race, &plan, count);
		if (verdict != PASS)
			return verdict;
		team_run(&team, count, attach, &plan);
		nic_faults_clear();
		for (i = 0; i < count; i++)
			if (!team.err[i])
				in[attached++] = plan.member[i];
		if (attached == count)
			return ktap_fail("no attach failed though the device refused one");
		verdict = holds_exactly(&plan.group, in, attached);
		if (verdict == PASS && attached)
			verdict = all_receive(&race->bench, &plan.group, in,
					      attached);
		/* Those refused come in now. */
		for (i = 0; i < count && verdict == PASS; i++)
			if (team.err[i])
				verdict = bench_attach(plan.member[i],
						       &plan.group);
		if (verdict == PASS)
			verdict = holds_exactly(&plan.group, plan.member, count);
		bench_clear(&race->bench);
		if (verdict == PASS)
			verdict = holds_exactly(&plan.group, NULL, 0);
	}
	return verdict;
}
