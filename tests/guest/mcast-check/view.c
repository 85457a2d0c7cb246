// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"
#include "child.h"

static enum verdict no_card(struct bench *bench)
{
	return ktap_skip("%s is no virtual card whose state could be asked",
			 bench->device->name);
}

enum verdict case_device_view(void *context, int arg)
{
	struct bench *bench = context;
	struct party *member[3];
	enum verdict verdict;
	union ibv_gid group;
	int i;

	if (!nic_available())
		return no_card(bench);
	group = bench_group(bench, CASE_FAMILY(arg));
	verdict = bench_device_has(&group, NULL, 0);
	for (i = 0; i < 3 && verdict == PASS; i++) {
		verdict = bench_party(bench, 0, CASE_FAMILY(arg), &member[i]);
		if (verdict == PASS)
			verdict = bench_attach(member[i], &group);
		if (verdict == PASS)
			verdict = bench_device_has(&group, member, i + 1);
	}
	/* The first leaves first, so that the others have to close ranks. */
	for (i = 0; i < 3 && verdict == PASS; i++) {
		verdict = bench_detach(member[i], &group);
		if (verdict == PASS)
			verdict = bench_device_has(&group, &member[i + 1], 2 - i);
	}
	return verdict;
}

int hold_group(const struct device *device, const char *text)
{
	struct endpoint endpoint;
	union ibv_gid group;
	int err;

	if (!gid_parse(text, &group))
		return EINVAL;
	err = endpoint_open(&endpoint, device, gid_family(&group),
			    DEFAULT_QKEY, DEFAULT_DEPTH);
	if (!err)
		err = endpoint_attach(&endpoint, &group, 0);
	if (err)
		return err;
	puts("attached");
	fflush(stdout);
	for (;;)
		pause();
}

enum verdict case_killed(void *context, int arg)
{
	struct bench *bench = context;
	char *holder[6] = { "mcast-check", "--device", bench->device->name,
			    "--hold" };
	enum verdict verdict = PASS;
	struct nic_group seen = { 0 };
	union ibv_gid group;
	pid_t child = -1;
	int err;

	if (!nic_available())
		return no_card(bench);
	group = bench_group(bench, CASE_FAMILY(arg));
	holder[4] = (char *)gid_text(&group);
	err = child_start(holder, &child);
	if (err)
		verdict = ktap_fail("start a process attached to %s: %s",
				    gid_text(&group), strerror(err));
	if (verdict == PASS) {
		err = nic_group(&group, &seen);
		if (err || seen.members != 1)
			verdict = ktap_fail("device lists %u members of %s while the process lives",
					    seen.members, gid_text(&group));
	}
	if (child > 0)
		child_kill(child);
	return verdict == PASS ? bench_device_has(&group, NULL, 0) : verdict;
}

/* After every case before this one, nothing of them is in the device. */
enum verdict case_nothing_left(void *context, int arg)
{
	struct bench *bench = context;
	int groups;

	(void)arg;
	if (!nic_available())
		return no_card(bench);
	groups = nic_group_count();
	if (groups)
		return ktap_fail("device holds %d groups", groups);
	return PASS;
}
