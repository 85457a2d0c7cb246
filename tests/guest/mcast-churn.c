// SPDX-License-Identifier: GPL-2.0
/*
 * mcast-churn: attaches and detaches without end: each group is left for good
 * once so many others have been joined after it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "endpoint.h"
#include "ktap.h"
#include "nic.h"
#include "team.h"

#define MAX_WINDOW 64

struct churn {
	struct device device;
	struct endpoint endpoints[TEAM_MAX];
	uint32_t pairs;
	uint32_t threads;
	uint32_t window;
	bool same;
	/* For each thread: pairs done, and what went wrong with the next. */
	unsigned long done[TEAM_MAX];
	const char *failed[TEAM_MAX];
};

/* Group number @n of thread @index: 239.128 to 239.255, 2^18 for each thread. */
static union ibv_gid nth_group(unsigned int index, uint32_t n)
{
	union ibv_gid group;

	gid_parse("239.128.0.0", &group);
	group.raw[13] |= (uint8_t)((index & 0x1f) << 2 | (n >> 16 & 3));
	group.raw[14] = (uint8_t)(n >> 8);
	group.raw[15] = (uint8_t)n;
	return group;
}

static int change(struct churn *churn, unsigned int index, uint32_t n, bool in)
{
	struct ibv_qp *qp = churn->endpoints[index].qp;
	uint32_t number = churn->same ? n % churn->window : n;
	union ibv_gid group = nth_group(index, number);
	int err = in ? ibv_attach_mcast(qp, &group, 0) :
		       ibv_detach_mcast(qp, &group, 0);

	if (err && !churn->failed[index])
		churn->failed[index] = in ? "attach" : "detach";
	return err;
}

static int work(struct team *team, unsigned int index)
{
	struct churn *churn = team->context;
	uint32_t pairs = churn->pairs / churn->threads, n, left;
	int err = 0;

	for (n = 0; n < pairs && !err; n++) {
		if (n >= churn->window)
			err = change(churn, index, n - churn->window, false);
		if (!err)
			err = change(churn, index, n, true);
		churn->done[index] += !err;
	}
	left = n < churn->window ? n : churn->window;
	/* One that failed to come in need not go. */
	for (; left; left--) {
		int failed;

		if (err && left == 1)
			break;
		failed = change(churn, index, n - left, false);
		err = err ? err : failed;
	}
	return err;
}

static double seconds(const struct timespec *from)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - from->tv_sec) +
	       (double)(now.tv_nsec - from->tv_nsec) / 1e9;
}

static enum verdict case_churn(void *context, int arg)
{
	struct churn *churn = context;
	unsigned long done = 0;
	struct timespec start;
	struct team team;
	unsigned int i;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &start);
	team_run(&team, churn->threads, work, churn);
	for (i = 0; i < churn->threads; i++)
		done += churn->done[i];
	ktap_note("%lu pairs in %.1f s with %u threads", done, seconds(&start),
		  churn->threads);
	for (i = 0; i < churn->threads; i++)
		if (team.err[i])
			return ktap_fail("%s of pair %lu of thread %u: %s",
					 churn->failed[i], churn->done[i] + 1, i,
					 strerror(team.err[i]));
	return PASS;
}

static enum verdict case_empty(void *context, int arg)
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

static enum verdict case_destroyed(void *context, int arg)
{
	struct churn *churn = context;
	unsigned int i;

	(void)arg;
	for (i = 0; i < churn->threads; i++) {
		int err = endpoint_close(&churn->endpoints[i]);

		if (err)
			return ktap_fail("destroy queue pair %u: %s", i,
					 strerror(err));
	}
	return PASS;
}

static int run(struct churn *churn)
{
	char name[128];
	struct test_case cases[] = {
		{ name, case_churn, 0 },
		{ "device holds no group in the end", case_empty, 0 },
		{ "every queue pair could be destroyed", case_destroyed, 0 },
	};
	unsigned int i;
	int failures;

	snprintf(name, sizeof(name),
		 "%u pairs of attach and detach, %u threads, %u groups at a time%s",
		 churn->pairs, churn->threads, churn->window,
		 churn->same ? ", the same" : "");
	for (i = 0; i < churn->threads; i++)
		if (endpoint_open(&churn->endpoints[i], &churn->device, IPV4,
				  DEFAULT_QKEY, 1))
			return EXIT_FAILURE;
	failures = ktap_run(cases, sizeof(cases) / sizeof(cases[0]), NULL,
			    churn, NULL);
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	static struct churn churn = {
		.pairs = 20000,
		.threads = 1,
		.window = 1,
	};
	const char *name = NULL;
	const struct choice choices[] = {
		CHOICE_DEVICE(&name),
		CHOICE_NUMBER('n', "pairs", "N", &churn.pairs,
			      "pairs of attach and detach in all (default 20000)"),
		CHOICE_NUMBER('t', "threads", "N", &churn.threads,
			      "threads that share them, each with a queue pair (default 1)"),
		CHOICE_NUMBER('w', "window", "N", &churn.window,
			      "groups that each is in at a time (default 1, at most 64)"),
		CHOICE_FLAG('s', "same", &churn.same,
			    "always the same groups, instead of others each time"),
	};
	const struct command command = {
		.name = "mcast-churn",
		.words = "[OPTION]...",
		.about = "Attach to and detach from ever other groups; results in KTAP.",
		COMMAND_CHOICES(choices),
	};
	int status;

	if (command_read(&command, argc, argv) != argc)
		return command_refuse(&command, "there are only options");
	if (!churn.threads || churn.threads > TEAM_MAX || !churn.window ||
	    churn.window > MAX_WINDOW)
		return command_refuse(&command, "1 to %d threads, 1 to %d groups",
				      TEAM_MAX, MAX_WINDOW);
	if (device_open(&churn.device, name))
		return EXIT_FAILURE;
	status = run(&churn);
	device_close(&churn.device);
	return status;
}
