// SPDX-License-Identifier: GPL-2.0
/*
 * mcast-recv: joins a multicast group over RDMA with one or more queue pairs
 * and waits for datagrams.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "endpoint.h"

#define MAX_QPS 8
#define MAX_RECEIVED 1024
#define MAX_SECONDS 86400

struct options {
	uint32_t count;
	uint32_t queues;
	uint32_t timeout;	/* seconds */
};

static struct received received[MAX_RECEIVED];

/* Whether what one queue pair got is a run of intact datagrams. */
static bool in_order(uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		if (!received[i].intact || received[i].header.fault[0] ||
		    received[i].token != received[0].token + i)
			return false;
	return true;
}

static int receive(struct endpoint *endpoint, const struct options *options)
{
	uint32_t count;
	int err;

	err = endpoint_receive(endpoint, options->timeout * 1000, received,
			       options->count, &count);
	if (!err && !in_order(count))
		err = EBADMSG;
	printf("QP %u received %u datagrams%s%s", endpoint->qp->qp_num, count,
	       count ? " from " : "",
	       count ? gid_text(&received[0].header.source) : "");
	printf("%s%s\n", err ? ": " : "", err ? strerror(err) : "");
	return err;
}

static int join_and_receive(const struct device *device,
			    const union ibv_gid *group,
			    const struct options *options)
{
	struct endpoint endpoints[MAX_QPS] = { 0 };
	unsigned int i, joined;
	int err = 0;

	for (joined = 0; joined < options->queues && !err; joined++) {
		struct endpoint *endpoint = &endpoints[joined];

		err = endpoint_open(endpoint, device, gid_family(group),
				    DEFAULT_QKEY, options->count);
		if (err)
			break;
		err = endpoint_attach(endpoint, group, 0);
		if (err)
			fprintf(stderr, "attach QP %u to %s: %s\n",
				endpoint->qp->qp_num, gid_text(group),
				strerror(err));
	}
	if (!err) {
		printf("joined %s with %u queue pairs\n", gid_text(group),
		       joined);
		fflush(stdout);
	}
	for (i = 0; i < joined && !err; i++)
		err = receive(&endpoints[i], options);
	for (i = 0; i < joined; i++) {
		endpoint_detach_all(&endpoints[i]);
		endpoint_close(&endpoints[i]);
	}
	return err;
}

int main(int argc, char **argv)
{
	struct options options = {
		.count = 1,
		.queues = 1,
		.timeout = 30,
	};
	const char *name = NULL;
	const struct choice choices[] = {
		CHOICE_DEVICE(&name),
		CHOICE_NUMBER('n', "count", "N", &options.count,
			      "datagrams to wait for (default 1, at most 1024)"),
		CHOICE_NUMBER('q', "queues", "N", &options.queues,
			      "queue pairs that join (default 1, at most 8)"),
		CHOICE_NUMBER('t', "timeout", "SEC", &options.timeout,
			      "longest wait for them (default 30)"),
	};
	const struct command command = {
		.name = "mcast-recv",
		.words = "[OPTION]... GROUP",
		.about = "Join GROUP, an IPv4 or IPv6 multicast address, and receive.\n"
			 "Prints a line once joined, and one for each queue pair at the end.\n"
			 "Succeeds if each received what was asked for, in order and intact.",
		COMMAND_CHOICES(choices),
	};
	int words = command_read(&command, argc, argv), err;
	struct device device;
	union ibv_gid group;

	if (argc - words != 1 || !gid_parse(argv[words], &group))
		return command_refuse(&command, "one group is needed");
	if (!options.count || options.count > MAX_RECEIVED || !options.queues ||
	    options.queues > MAX_QPS || options.timeout > MAX_SECONDS)
		return command_refuse(&command, "1 to %u datagrams, 1 to %u queue pairs, at most %u seconds",
				      MAX_RECEIVED, MAX_QPS, MAX_SECONDS);
	if (device_open(&device, name))
		return EXIT_FAILURE;
	err = join_and_receive(&device, &group, &options);
	device_close(&device);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
