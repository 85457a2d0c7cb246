// SPDX-License-Identifier: GPL-2.0
/*
 * mcast-send: sends datagrams to a multicast group over RDMA. The sender need
 * not be a member.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "endpoint.h"

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
	uint32_t count = 1, size = 256;
	const char *name = NULL;
	const struct choice choices[] = {
		CHOICE_DEVICE(&name),
		CHOICE_NUMBER('n', "count", "N", &count,
			      "how many datagrams (default 1)"),
		CHOICE_NUMBER('s', "size", "BYTES", &size,
			      "payload of each (default 256)"),
	};
	const struct command command = {
		.name = "mcast-send",
		.words = "[OPTION]... GROUP",
		.about = "Send datagrams to GROUP, an IPv4 or IPv6 multicast address.",
		COMMAND_CHOICES(choices),
	};
	int words = command_read(&command, argc, argv), err;
	struct device device;
	union ibv_gid group;

	if (argc - words != 1 || !gid_parse(argv[words], &group))
		return command_refuse(&command, "one group is needed");
	if (device_open(&device, name))
		return EXIT_FAILURE;
	err = send_all(&device, &group, count, size);
	device_close(&device);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
