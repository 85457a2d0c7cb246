// SPDX-License-Identifier: GPL-2.0
/*
 * bench-cost: what an attach, a detach and a lookup cost when the device holds a
 * given number of groups.
 *
 * The groups are there already; their members are other queue pairs. Attach adds
 * one to make the number full. A lookup is an attach of a queue pair that is a
 * member already, under another MLID: a driver finds the group and counts.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "counter.h"
#include "crowd.h"
#include "sample.h"

#define FILLER_QPS 64
#define PROBE_OCTET 101
#define WARM_UP 3

struct options {
	uint32_t groups;
	uint32_t repeat;
	uint32_t profile;	/* or NO_PROFILE */
};

static int complain(const char *what, const union ibv_gid *group, int err)
{
	fprintf(stderr, "%s %s: %s\n", what, gid_text(group), strerror(err));
	return err;
}

static int measure_pairs(struct ibv_qp *qp, const struct options *options)
{
	struct samples attach, detach;
	uint32_t i, rounds = options->repeat + WARM_UP;
	int err = ENOMEM;

	if (!samples_init(&attach, "attach", options->repeat))
		return ENOMEM;
	if (!samples_init(&detach, "detach", options->repeat))
		goto out;
	for (i = 0; i < rounds; i++) {
		union ibv_gid group = crowd_group(PROBE_OCTET, i);

		if (i == WARM_UP) {
			attach.count = 0;
			detach.count = 0;
			samples_off_reset();
			if (options->profile != NO_PROFILE)
				counter_ask(COUNTER_PROFILE_START, 0, 0, 0);
		}
		samples_begin(&attach);
		err = ibv_attach_mcast(qp, &group, 0);
		samples_end(&attach);
		if (err) {
			complain("attach to", &group, err);
			break;
		}
		samples_begin(&detach);
		err = ibv_detach_mcast(qp, &group, 0);
		samples_end(&detach);
		if (err) {
			complain("detach from", &group, err);
			break;
		}
	}
	if (options->profile != NO_PROFILE)
		counter_ask(COUNTER_PROFILE_WRITE, options->profile, 0, 0);
	/* What was measured before a failure counts. */
	if (i > WARM_UP) {
		samples_print(&attach, options->groups);
		samples_print(&detach, options->groups);
		samples_off_print("pair", options->groups);
	}
out:
	samples_free(&attach);
	samples_free(&detach);
	return err;
}

static int measure_lookup(struct ibv_qp *qp, const union ibv_gid *group, const char *name,
			  const struct options *options)
{
	uint32_t i, rounds = options->repeat + WARM_UP;
	struct samples samples;
	int err;

	if (!samples_init(&samples, name, options->repeat))
		return ENOMEM;
	err = ibv_attach_mcast(qp, group, 0);
	if (err) {
		complain("attach to", group, err);
		goto out;
	}
	samples_off_reset();
	for (i = 0; i < rounds; i++) {
		if (i == WARM_UP)
			samples.count = 0;
		samples_begin(&samples);
		err = ibv_attach_mcast(qp, group, 1);
		samples_end(&samples);
		if (!err)
			err = ibv_detach_mcast(qp, group, 1);
		if (err) {
			complain("attach once more to", group, err);
			break;
		}
	}
	if (!err) {
		samples_print(&samples, options->groups);
		samples_off_print(name, options->groups);
	}
	ibv_detach_mcast(qp, group, 0);
out:
	samples_free(&samples);
	return err;
}

static int measure(const struct device *device, const struct options *options)
{
	union ibv_gid oldest = crowd_group(100, 0);
	union ibv_gid newest = crowd_group(100, options->groups - 1);
	struct crowd fillers, probe;
	int err, ret;

	err = crowd_open(&fillers, device, FILLER_QPS);
	if (err)
		return err;
	err = crowd_open(&probe, device, 1);
	if (err) {
		crowd_close(&fillers);
		return err;
	}
	err = crowd_join(&fillers, options->groups - 1);
	if (!err)
		err = measure_pairs(probe.qps[0], options);
	ret = crowd_join(&fillers, options->groups);
	err = err ? err : ret;
	if (!ret) {
		ret = measure_lookup(probe.qps[0], &oldest, "lookup_oldest", options);
		err = err ? err : ret;
		ret = measure_lookup(probe.qps[0], &newest, "lookup_newest", options);
		err = err ? err : ret;
	}
	ret = crowd_close(&probe);
	err = err ? err : ret;
	ret = crowd_close(&fillers);
	return err ? err : ret;
}

int main(int argc, char **argv)
{
	struct options options = {
		.groups = 1,
		.repeat = 20,
		.profile = NO_PROFILE,
	};
	const char *name = NULL;
	const struct choice choices[] = {
		CHOICE_DEVICE(&name),
		CHOICE_NUMBER('g', "groups", "N", &options.groups,
			      "groups that the device is to hold (1)"),
		CHOICE_NUMBER('r', "repeat", "N", &options.repeat,
			      "how often to measure each (20)"),
		CHOICE_CODE,
		CHOICE_SPIN,
		CHOICE_PROFILE(&options.profile,
			       "write a profile of the attaches under that number"),
	};
	const struct command command = {
		.name = "bench-cost",
		.words = "[OPTION]...",
		.about = "Measure attach, detach and lookup; results in lines of JSON.",
		COMMAND_CHOICES(choices),
	};
	struct device device;
	int err;

	if (command_read(&command, argc, argv) != argc)
		return command_refuse(&command, "there are only options");
	if (!options.groups || !options.repeat)
		return command_refuse(&command, "at least one group, and once");
	if (device_open(&device, name))
		return EXIT_FAILURE;
	err = measure(&device, &options);
	device_close(&device);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
