// SPDX-License-Identifier: GPL-2.0
/*
 * mcast-recv: joins a multicast group over RDMA with one or more queue pairs
 * and waits for datagrams.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint.h"

#define MAX_QPS 8

static const char usage[] =
	"Usage: mcast-recv [OPTION]... GROUP\n"
	"Join GROUP, an IPv4 or IPv6 multicast address, and receive.\n"
	"Prints a line once joined, and one for each queue pair at the end.\n"
	"Succeeds if each received what was asked for, in order and intact.\n"
	"\n"
	"  -d, --device NAME  the device (default: $RDMA_DEV, else the only one)\n"
	"  -n, --count N      datagrams to wait for (default 1, at most 1024)\n"
	"  -q, --queues N     queue pairs that join (default 1, at most 8)\n"
	"  -t, --timeout SEC  longest wait for them (default 30)\n"
	"  -h, --help         this text\n";

struct options {
	const char *device;
	uint32_t count;
	unsigned int queues;
	int timeout;
};

static struct received received[1024];

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
	static const struct option long_options[] = {
		{ "device", required_argument, NULL, 'd' },
		{ "count", required_argument, NULL, 'n' },
		{ "queues", required_argument, NULL, 'q' },
		{ "timeout", required_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct options options = {
		.count = 1,
		.queues = 1,
		.timeout = 30,
	};
	struct device device;
	union ibv_gid group;
	int option, err;

	while ((option = getopt_long(argc, argv, "d:n:q:t:h", long_options,
				     NULL)) >= 0) {
		switch (option) {
		case 'd':
			options.device = optarg;
			break;
		case 'n':
			options.count = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'q':
			options.queues = (unsigned int)strtoul(optarg, NULL, 0);
			break;
		case 't':
			options.timeout = atoi(optarg);
			break;
		case 'h':
			fputs(usage, stdout);
			return EXIT_SUCCESS;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (argc - optind != 1 || !gid_parse(argv[optind], &group) ||
	    !options.count || options.count > 1024 || !options.queues ||
	    options.queues > MAX_QPS) {
		fputs(usage, stderr);
		return 2;
	}
	if (device_open(&device, options.device))
		return EXIT_FAILURE;
	err = join_and_receive(&device, &group, &options);
	device_close(&device);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
