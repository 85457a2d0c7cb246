// SPDX-License-Identifier: GPL-2.0
/*
 * mcast-limits: fills every group that the device says it has with every member
 * it says a group takes, and looks whether all of them are served.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "command.h"

/* Groups that are listened to, besides the last, unless all are. */
#define SAMPLE_EVERY 64
#define MAX_MEMBERS 16

struct limits {
	struct bench bench;
	struct party *member[MAX_MEMBERS];
	struct party *extra;
	unsigned int members;	/* as the device says, as the next two */
	uint32_t groups;
	uint32_t total;
	uint32_t filled;	/* groups that all members are attached to */
	bool all;
};

static union ibv_gid nth_group(uint32_t n)
{
	union ibv_gid group;

	gid_parse("239.64.0.0", &group);
	group.raw[13] |= (uint8_t)(n >> 16 & 0x3f);
	group.raw[14] = (uint8_t)(n >> 8);
	group.raw[15] = (uint8_t)n;
	return group;
}

static enum verdict not_filled(const struct limits *limits)
{
	return ktap_skip("only %u of %u groups could be filled", limits->filled,
			 limits->groups);
}

static enum verdict case_numbers(void *context, int arg)
{
	struct limits *limits = context;

	(void)arg;
	ktap_note("max_mcast_grp %u, max_mcast_qp_attach %u, max_total_mcast_qp_attach %u",
		  limits->groups, limits->members, limits->total);
	if (!limits->groups || !limits->members)
		return ktap_fail("no multicast: %u groups of %u members",
				 limits->groups, limits->members);
	if ((uint64_t)limits->groups * limits->members != limits->total)
		return ktap_fail("%u groups of %u members are not %u",
				 limits->groups, limits->members,
				 limits->total);
	return PASS;
}

static enum verdict case_fill(void *context, int arg)
{
	struct limits *limits = context;
	enum verdict verdict = PASS;
	unsigned int i;

	(void)arg;
	if (limits->members > MAX_MEMBERS || limits->groups > 65536)
		return ktap_skip("%u groups of %u members: too many to fill",
				 limits->groups, limits->members);
	for (i = 0; i < limits->members && verdict == PASS; i++)
		verdict = bench_party(&limits->bench, 0, IPV4,
				      &limits->member[i]);
	if (verdict == PASS)
		verdict = bench_party(&limits->bench, 0, IPV4, &limits->extra);
	for (; limits->filled < limits->groups && verdict == PASS;
	     limits->filled += verdict == PASS) {
		union ibv_gid group = nth_group(limits->filled);

		for (i = 0; i < limits->members && verdict == PASS; i++)
			verdict = bench_attach(limits->member[i], &group);
	}
	return verdict;
}

static enum verdict case_device_agrees(void *context, int arg)
{
	struct limits *limits = context;
	int full = nic_groups_with(limits->members), all = nic_group_count();

	(void)arg;
	if (!nic_available())
		return ktap_skip("no virtual card whose state could be asked");
	if (limits->filled < limits->groups)
		return not_filled(limits);
	if (full != (int)limits->groups || all != full)
		return ktap_fail("device holds %d groups, %d of them with %u members",
				 all, full, limits->members);
	return PASS;
}

static int attach(struct party *party, const union ibv_gid *group)
{
	return node_attach(party->node, party->id, group, 0);
}

static enum verdict case_one_more(void *context, int arg)
{
	struct limits *limits = context;
	union ibv_gid group = nth_group(limits->groups);
	enum verdict verdict;
	uint32_t n;

	(void)arg;
	if (limits->filled < limits->groups)
		return not_filled(limits);
	verdict = bench_errno("one group more", attach(limits->extra, &group),
			      ENOMEM);
	if (verdict == PASS)
		verdict = bench_errno("one group more, of a member",
				      attach(limits->member[0], &group), ENOMEM);
	for (n = 0; n < limits->groups && verdict == PASS; n += SAMPLE_EVERY) {
		group = nth_group(n);
		verdict = bench_errno("one member more",
				      attach(limits->extra, &group), ENOMEM);
	}
	return verdict;
}

static enum verdict listen(struct limits *limits, uint32_t n,
			   struct party *sender)
{
	struct shot shot = {
		.sender = sender,
		.to = nth_group(n),
		.length = 64,
	};
	enum verdict verdict = bench_shoot(&limits->bench, &shot);
	unsigned int i;

	for (i = 0; i < limits->members && verdict == PASS; i++)
		verdict = bench_expect(&limits->bench, &shot, limits->member[i],
				       1);
	if (verdict == PASS)
		verdict = bench_expect(&limits->bench, &shot, limits->extra, 0);
	return verdict;
}

static enum verdict case_delivery(void *context, int arg)
{
	struct limits *limits = context;
	struct party *sender;
	enum verdict verdict;
	uint32_t n, listened = 0;

	(void)arg;
	if (!limits->filled)
		return not_filled(limits);
	verdict = bench_party(&limits->bench, 0, IPV4, &sender);
	for (n = 0; n < limits->filled && verdict == PASS; n++) {
		if (!limits->all && n % SAMPLE_EVERY && n + 1 < limits->filled)
			continue;
		verdict = listen(limits, n, sender);
		listened++;
	}
	ktap_note("listened to %u groups", listened);
	return verdict;
}

/* One group given up, or one place in one, makes room for one. */
static enum verdict case_room(void *context, int arg)
{
	struct limits *limits = context;
	union ibv_gid more = nth_group(limits->groups), given, other;
	enum verdict verdict = PASS;
	unsigned int i;
	uint32_t n;

	(void)arg;
	if (limits->filled < limits->groups)
		return not_filled(limits);
	for (n = 1; n < limits->groups && verdict == PASS; n = n * 3 + 1) {
		given = nth_group(n);
		other = nth_group(n - 1);
		for (i = 0; i < limits->members && verdict == PASS; i++)
			verdict = bench_detach(limits->member[i], &given);
		if (verdict == PASS)
			verdict = bench_attach(limits->extra, &more);
		if (verdict == PASS)
			verdict = bench_errno("the group given up, once more",
					      attach(limits->extra, &given),
					      ENOMEM);
		if (verdict == PASS)
			verdict = bench_detach(limits->extra, &more);
		for (i = 0; i < limits->members && verdict == PASS; i++)
			verdict = bench_attach(limits->member[i], &given);
		if (verdict == PASS)
			verdict = bench_detach(limits->member[0], &other);
		if (verdict == PASS)
			verdict = bench_attach(limits->extra, &other);
		if (verdict == PASS)
			verdict = bench_errno("one member more",
					      attach(limits->member[0], &other),
					      ENOMEM);
		if (verdict == PASS)
			verdict = bench_detach(limits->extra, &other);
		if (verdict == PASS)
			verdict = bench_attach(limits->member[0], &other);
	}
	return verdict;
}

static enum verdict case_clear(void *context, int arg)
{
	struct limits *limits = context;
	int groups;

	(void)arg;
	bench_clear(&limits->bench);
	groups = nic_available() ? nic_group_count() : 0;
	if (limits->bench.stuck)
		return ktap_fail("%u queue pairs could not be destroyed",
				 limits->bench.stuck);
	return groups ? ktap_fail("device holds %d groups", groups) : PASS;
}

static const struct test_case cases[] = {
	{ "reported limits belong together", case_numbers, 0 },
	{ "every group takes every member", case_fill, 0 },
	{ "device holds all of them", case_device_agrees, 0 },
	{ "one group or one member more is ENOMEM", case_one_more, 0 },
	{ "with all groups full, members get a copy each", case_delivery, 0 },
	{ "what is given up makes room for one", case_room, 0 },
	{ "all of it can be given back", case_clear, 0 },
};

int main(int argc, char **argv)
{
	static struct limits limits;
	const char *name = NULL;
	const struct choice choices[] = {
		CHOICE_DEVICE(&name),
		CHOICE_FLAG('a', "all", &limits.all,
			    "listen to every group, not to one in 64"),
	};
	const struct command command = {
		.name = "mcast-limits",
		.words = "[OPTION]...",
		.about = "Reach every multicast limit of the device; results in KTAP.",
		COMMAND_CHOICES(choices),
	};
	struct device device;
	int failures;

	if (command_read(&command, argc, argv) != argc)
		return command_refuse(&command, "there are only options");
	if (device_open(&device, name))
		return EXIT_FAILURE;
	limits.bench.device = &device;
	limits.bench.next_token = 1000;
	limits.members = (unsigned int)device.attr.max_mcast_qp_attach;
	limits.groups = (uint32_t)device.attr.max_mcast_grp;
	limits.total = (uint32_t)device.attr.max_total_mcast_qp_attach;
	if (node_local(&limits.bench.nodes[0], &device))
		return EXIT_FAILURE;
	limits.bench.node_count = 1;
	failures = ktap_run(cases, sizeof(cases) / sizeof(cases[0]), NULL,
			    &limits, NULL);
	node_close(&limits.bench.nodes[0]);
	device_close(&device);
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
