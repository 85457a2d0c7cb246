// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "cases.h"

static bool lists(const struct nic_group *seen, uint32_t qpn)
{
	unsigned int i;

	for (i = 0; i < seen->members; i++)
		if (seen->qpn[i] == qpn)
			return true;
	return false;
}

enum verdict holds_exactly(const union ibv_gid *group, struct party **members,
			   unsigned int count)
{
	struct nic_group seen;
	unsigned int i;
	int err;

	if (!nic_available())
		return PASS;
	err = nic_group(group, &seen);
	if (err)
		return ktap_fail("ask the device for %s: %s", gid_text(group),
				 strerror(err));
	if (seen.entries > 1)
		return ktap_fail("device has %u groups of address %s",
				 seen.entries, gid_text(group));
	if (seen.members != count)
		return ktap_fail("device lists %s with %u members, not %u",
				 gid_text(group), seen.members, count);
	for (i = 0; i < count; i++)
		if (!lists(&seen, members[i]->qpn))
			return ktap_fail("device does not list QP %u in %s",
					 members[i]->qpn, gid_text(group));
	return PASS;
}

enum verdict all_receive(struct bench *bench, const union ibv_gid *group,
			 struct party **members, unsigned int count)
{
	struct shot shot = { .to = *group, .length = 200 };
	enum verdict verdict;
	unsigned int i;

	verdict = bench_party(bench, 0, gid_family(group), &shot.sender);
	if (verdict == PASS)
		verdict = bench_shoot(bench, &shot);
	for (i = 0; i < count && verdict == PASS; i++)
		verdict = bench_expect(bench, &shot, members[i], 1);
	return verdict;
}

/* The next three judge all cases before them. */
enum verdict case_no_violation(void *context, int arg)
{
	long count;

	(void)context;
	(void)arg;
	if (!nic_available())
		return ktap_skip("no virtual card whose state could be asked");
	/* Judging all objects together adds what it finds to the others. */
	nic_number("check", "ok");
	count = nic_objects("violation_count");
	if (count)
		return ktap_fail("the driver broke %ld rules of the device",
				 count);
	return PASS;
}

enum verdict case_nothing_left(void *context, int arg)
{
	int groups = nic_group_count();

	(void)context;
	(void)arg;
	if (!nic_available())
		return ktap_skip("no virtual card whose state could be asked");
	if (groups)
		return ktap_fail("device holds %d groups", groups);
	return PASS;
}

enum verdict case_all_destroyed(void *context, int arg)
{
	struct race *race = context;

	(void)arg;
	if (race->bench.stuck)
		return ktap_fail("%u queue pairs could not be destroyed though detached",
				 race->bench.stuck);
	return PASS;
}
