// SPDX-License-Identifier: GPL-2.0
/*
 * bench-steps: does one kind of attach or detach on many groups, a step for each
 * line read, so that what a step takes of the device can be asked in between.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crowd.h"

#define STEPS_OCTET 104

static const char usage[] =
	"Usage: bench-steps [OPTION]...\n"
	"Do the step named by each line of the input for all groups, and say so.\n"
	"\n"
	"  -d, --device NAME  the device (default: $RDMA_DEV, else the only one)\n"
	"  -g, --groups N     how many groups (32)\n"
	"  -h, --help         this text\n"
	"\n"
	"Steps: attach|detach QP LID, with QP 0 to 7.\n";

#define QPS 8

static int step(struct crowd *crowd, const char *line, uint32_t groups)
{
	char verb[16];
	unsigned int qp, lid;
	uint32_t i;
	int err;

	if (sscanf(line, "%15s %u %u", verb, &qp, &lid) != 3 || qp >= QPS)
		return EINVAL;
	for (i = 0; i < groups; i++) {
		union ibv_gid group = crowd_group(STEPS_OCTET, i);

		if (!strcmp(verb, "attach"))
			err = ibv_attach_mcast(crowd->qps[qp], &group, (uint16_t)lid);
		else if (!strcmp(verb, "detach"))
			err = ibv_detach_mcast(crowd->qps[qp], &group, (uint16_t)lid);
		else
			err = EINVAL;
		if (err)
			return err;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "device", required_argument, NULL, 'd' },
		{ "groups", required_argument, NULL, 'g' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const char *name = NULL;
	uint32_t groups = 32;
	struct device device;
	struct crowd crowd;
	char line[64];
	int option, err;

	while ((option = getopt_long(argc, argv, "d:g:h", long_options, NULL)) >= 0) {
		switch (option) {
		case 'd':
			name = optarg;
			break;
		case 'g':
			groups = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'h':
			fputs(usage, stdout);
			return EXIT_SUCCESS;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (device_open(&device, name))
		return EXIT_FAILURE;
	err = crowd_open(&crowd, &device, QPS);
	if (err)
		goto out;
	puts("ready");
	fflush(stdout);
	while (!err && fgets(line, sizeof(line), stdin)) {
		err = step(&crowd, line, groups);
		printf("%s\n", err ? strerror(err) : "done");
		fflush(stdout);
	}
	crowd_close(&crowd);
out:
	device_close(&device);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
