// SPDX-License-Identifier: GPL-2.0
/*
 * leak-check: makes and unmakes objects many times over, and then asks the
 * virtual card what it still holds.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "endpoint.h"
#include "ktap.h"
#include "nic.h"

static const char *const objects[] = { "qps", "cqs", "mrs", "ahs", "groups" };

#define OBJECTS (sizeof(objects) / sizeof(objects[0]))

struct context {
	struct device *device;
	uint32_t rounds;
	long before[OBJECTS];
};

/* An address handle is destroyed without waiting: give the device a moment. */
static bool settles_at(const char *object, long want, long *seen)
{
	int try;

	for (try = 0; try < 20; try++) {
		*seen = nic_objects(object);
		if (*seen == want)
			return true;
		poll(NULL, 0, 50);
	}
	return false;
}

static enum verdict compare(const struct context *context)
{
	size_t i;

	if (!nic_available())
		return PASS;
	for (i = 0; i < OBJECTS; i++) {
		long seen;

		if (!settles_at(objects[i], context->before[i], &seen))
			return ktap_fail("device holds %ld %s, %ld at the start",
					 seen, objects[i], context->before[i]);
	}
	return PASS;
}

static enum verdict case_endpoints(void *data, int arg)
{
	struct context *context = data;
	unsigned int round;

	(void)arg;
	for (round = 0; round < context->rounds; round++) {
		struct endpoint endpoint;
		int err;

		err = endpoint_open(&endpoint, context->device,
				    round & 1 ? IPV6 : IPV4, DEFAULT_QKEY,
				    DEFAULT_DEPTH);
		if (!err)
			err = endpoint_close(&endpoint);
		if (err)
			return ktap_fail("round %u of %u: %s", round + 1,
					 context->rounds, strerror(err));
	}
	return compare(context);
}

static enum verdict case_addresses(void *data, int arg)
{
	struct context *context = data;
	struct endpoint endpoint;
	enum verdict verdict = PASS;
	unsigned int round;
	int err;

	(void)arg;
	err = endpoint_open(&endpoint, context->device, IPV4, DEFAULT_QKEY,
			    DEFAULT_DEPTH);
	if (err)
		return ktap_fail("open endpoint: %s", strerror(err));
	for (round = 0; round < context->rounds; round++) {
		struct datagram datagram = {
			.qpn = MULTICAST_QPN,
			.qkey = DEFAULT_QKEY,
			.length = 16,
		};

		/* Each group is a new address, with a new handle. */
		gid_parse("239.3.0.0", &datagram.to);
		datagram.to.raw[14] = round >> 8;
		datagram.to.raw[15] = round;
		err = endpoint_send(&endpoint, &datagram, 1);
		if (err) {
			verdict = ktap_fail("send to %s: %s",
					    gid_text(&datagram.to),
					    strerror(err));
			break;
		}
	}
	endpoint_close(&endpoint);
	return verdict == PASS ? compare(context) : verdict;
}

/* One group made and unmade, over and over: more often than a device has. */
static enum verdict case_groups(void *data, int arg)
{
	struct context *context = data;
	struct endpoint endpoint;
	enum verdict verdict = PASS;
	union ibv_gid group;
	int round, err;

	err = endpoint_open(&endpoint, context->device, IPV4, DEFAULT_QKEY,
			    DEFAULT_DEPTH);
	if (err)
		return ktap_fail("open endpoint: %s", strerror(err));
	gid_parse("239.4.5.6", &group);
	for (round = 0; round < arg; round++) {
		err = endpoint_attach(&endpoint, &group, 0);
		if (!err)
			err = endpoint_detach(&endpoint, &group, 0);
		if (err) {
			verdict = ktap_fail("round %d of %d: %s", round + 1,
					    arg, strerror(err));
			break;
		}
	}
	endpoint_close(&endpoint);
	return verdict == PASS ? compare(context) : verdict;
}

/* A child with everything open and attached, to be killed. */
static void hold_everything(const char *name, int ready)
{
	struct endpoint endpoints[4];
	struct device device;
	union ibv_gid group;
	unsigned int i;

	if (device_open(&device, name))
		_exit(1);
	gid_parse("239.7.7.7", &group);
	for (i = 0; i < 4; i++)
		if (endpoint_open(&endpoints[i], &device, IPV4, DEFAULT_QKEY,
				  DEFAULT_DEPTH) ||
		    endpoint_attach(&endpoints[i], &group, 0))
			_exit(1);
	if (write(ready, "r", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static enum verdict case_killed(void *data, int arg)
{
	struct context *context = data;
	int round;

	for (round = 0; round < arg; round++) {
		int ends[2];
		char byte;
		bool ready;
		pid_t child;

		if (pipe(ends))
			return ktap_fail("make pipe: %s", strerror(errno));
		child = fork();
		if (!child) {
			close(ends[0]);
			hold_everything(context->device->name, ends[1]);
		}
		close(ends[1]);
		ready = child > 0 && read(ends[0], &byte, 1) == 1;
		close(ends[0]);
		if (child > 0) {
			kill(child, SIGKILL);
			waitpid(child, NULL, 0);
		}
		if (!ready)
			return ktap_fail("child %d did not get its objects",
					 round + 1);
	}
	return compare(context);
}

static const struct test_case cases[] = {
	{ "queue pairs, queues and memory come and go", case_endpoints, 0 },
	{ "address handles come and go", case_addresses, 0 },
	{ "5000 times attach and detach of one group", case_groups, 5000 },
	{ "5 processes killed with everything open", case_killed, 5 },
};

int main(int argc, char **argv)
{
	struct context context = { .rounds = 100 };
	const char *name = NULL;
	const struct choice choices[] = {
		CHOICE_DEVICE(&name),
		CHOICE_NUMBER('r', "rounds", "N", &context.rounds,
			      "how often (default 100)"),
	};
	const struct command command = {
		.name = "leak-check",
		.words = "[OPTION]...",
		.about = "Make and unmake RDMA objects; results in KTAP.",
		COMMAND_CHOICES(choices),
	};
	struct device device;
	int failures;
	size_t i;

	if (command_read(&command, argc, argv) != argc)
		return command_refuse(&command, "there are only options");
	if (device_open(&device, name))
		return EXIT_FAILURE;
	context.device = &device;
	for (i = 0; nic_available() && i < OBJECTS; i++)
		context.before[i] = nic_objects(objects[i]);
	failures = ktap_run(cases, sizeof(cases) / sizeof(cases[0]), NULL,
			    &context, NULL);
	device_close(&device);
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
