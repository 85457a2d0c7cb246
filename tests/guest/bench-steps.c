// SPDX-License-Identifier: GPL-2.0
/*
 * bench-steps: does one kind of attach or detach on many groups, a step for each
 * line read, so that what a step takes of the device can be asked in between.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "crowd.h"

#define STEPS_OCTET 104

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
	const char *name = NULL;
	uint32_t groups = 32;
	const struct choice choices[] = {
		CHOICE_DEVICE(&name),
		CHOICE_NUMBER('g', "groups", "N", &groups, "how many groups (32)"),
	};
	const struct command command = {
		.name = "bench-steps",
		.words = "[OPTION]...",
		.about = "Do the step named by each line of the input for all groups, and say so.",
		.more = "Steps: attach|detach QP LID, with QP 0 to 7.",
		COMMAND_CHOICES(choices),
	};
	struct device device;
	struct crowd crowd;
	char line[64];
	int err;

	if (command_read(&command, argc, argv) != argc)
		return command_refuse(&command, "there are only options");
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
