// SPDX-License-Identifier: GPL-2.0
/*
 * mcast-race: attaches and detaches from several threads at the same moment,
 * also while the device refuses or is slow, through unmodified libibverbs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "command.h"

static const struct test_case sound[] = {
	{ "2 threads make one group at once: one group, both in it", case_create_together, 2 },
	{ "8 threads make one group at once: one group, all in it", case_create_together, 8 },
	{ "3 threads join a live group at once: all in it", case_join_together, 0 },
	{ "3 threads join a live group while the device is slow: all in it",
	  case_join_slow_device, 0 },
	{ "8 threads come and go in 3 groups: members are those left in", case_storm, 8 },
	{ "first datagram after each attach arrives", case_first_datagram, 0 },
};

static const struct test_case failing[] = {
	{ "device refuses a new group: nothing is left, next attach works",
	  case_create_refused, 0 },
	{ "device refuses a group that 4 threads make: who is told 0 is in it",
	  case_create_refused_together, 4 },
	{ "every third MODIFY fails under 7 threads: detach never does", case_storm_failing, 7 },
};

static const struct test_case last[] = {
	{ "every queue pair could be destroyed", case_all_destroyed, 0 },
	{ "device holds no group in the end", case_nothing_left, 0 },
	{ "the driver broke no rule of the device", case_no_violation, 0 },
};

static void after(void *context)
{
	struct race *race = context;

	bench_clear(&race->bench);
}

static int run(struct device *device, const char *only, bool faults,
	       unsigned int rounds)
{
	static struct race race;
	static struct test_case cases[16];
	const struct test_case *chosen = faults ? failing : sound;
	size_t count = faults ? sizeof(failing) : sizeof(sound);
	int failures;

	race.rounds = rounds;
	race.bench.device = device;
	race.bench.next_token = 1000;
	if (node_local(&race.bench.nodes[0], device))
		return EXIT_FAILURE;
	race.bench.node_count = 1;

	memcpy(cases, chosen, count);
	count /= sizeof(cases[0]);
	memcpy(cases + count, last, sizeof(last));
	count += sizeof(last) / sizeof(last[0]);
	failures = ktap_run(cases, count, only, &race, after);
	node_close(&race.bench.nodes[0]);
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	const char *name = NULL, *only = NULL;
	uint32_t rounds = 400;
	bool faults = false;
	const struct choice choices[] = {
		CHOICE_DEVICE(&name),
		CHOICE_ONLY(&only),
		CHOICE_FLAG('F', "faults", &faults,
			    "the cases in which the device refuses, instead of the others"),
		CHOICE_NUMBER('r', "rounds", "N", &rounds,
			      "how often (default 400)"),
	};
	const struct command command = {
		.name = "mcast-race",
		.words = "[OPTION]...",
		.about = "Attach and detach from several threads at once; results in KTAP.",
		COMMAND_CHOICES(choices),
	};
	struct device device;
	int status;

	if (command_read(&command, argc, argv) != argc)
		return command_refuse(&command, "there are only options");
	if (device_open(&device, name))
		return EXIT_FAILURE;
	status = run(&device, only, faults, rounds);
	device_close(&device);
	return status;
}
