// SPDX-License-Identifier: GPL-2.0
/*
 * mcast-send: sends datagrams to a multicast group over RDMA. The sender need
 * not be a member.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint.h"

static const char usage[] =
	"Usage: mcast-send [OPTION]... GROUP\n"
	"Send datagrams to GROUP, an IPv4 or IPv6 multicast address.\n"
	"\n"
	"  -d, --device NAME  the device (default: $RDMA_DEV, else the only one)\n"
	"  -n, --count N      how many datagrams (default 1)\n"
	"  -s, --size BYTES   payload of each (default 256)\n"
	"  -h, --help         this text\n";

static int send_all(const struct device *device, const union ibv_gid *group,
		    uint32_t count, uint32_t size)
{
	struct datagram datagram = {
		.to = *group,
		.qpn = MULTICAST_QPN,
		.qkey = DEFAULT_QKEY,
		.length = size,
		.token = 1,
	};
	struct endpoint endpoint;
	int err;

	err = endpoint_open(&endpoint, device, gid_family(group), DEFAULT_QKEY,
			    1);
	if (err)
		return err;
	err = endpoint_send(&endpoint, &datagram, count);
	if (err)
		fprintf(stderr, "send to %s: %s\n", gid_text(group),
			strerror(err));
	else
		printf("QP %u sent %u datagrams of %u bytes to %s\n",
		       endpoint.qp->qp_num, count, size, gid_text(group));
	endpoint_close(&endpoint);
	return err;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "device", required_argument, NULL, 'd' },
		{ "count", required_argument, NULL, 'n' },
		{ "size", required_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	uint32_t count = 1, size = 256;
	const char *name = NULL;
	struct device device;
	union ibv_gid group;
	int option, err;

	while ((option = getopt_long(argc, argv, "d:n:s:h", options, NULL)) >= 0) {
		switch (option) {
		case 'd':
			name = optarg;
			break;
		case 'n':
			count = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 's':
			size = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'h':
			fputs(usage, stdout);
			return EXIT_SUCCESS;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (argc - optind != 1 || !gid_parse(argv[optind], &group)) {
		fputs(usage, stderr);
		return 2;
	}
	if (device_open(&device, name))
		return EXIT_FAILURE;
	err = send_all(&device, &group, count, size);
	device_close(&device);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
