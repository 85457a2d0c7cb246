// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

extern char **environ;

static enum verdict no_card(struct bench *bench)
{
	return ktap_skip("%s is no virtual card whose state could be asked",
			 bench->device->name);
}

/* The device lists @group with exactly the queue pairs of @members. */
static enum verdict device_has(const union ibv_gid *group,
			       struct party **members, unsigned int count)
{
	char text[2][MAC_TEXT];
	unsigned char mac[6];
	struct nic_group seen;
	unsigned int i, j;
	int err = nic_group(group, &seen);

	if (err)
		return ktap_fail("ask the device for %s: %s", gid_text(group),
				 strerror(err));
	if (seen.present != !!count || seen.members != count)
		return ktap_fail("device lists %s with %u members, not %u",
				 gid_text(group), seen.members, count);
	for (i = 0; i < count; i++) {
		for (j = 0; j < count; j++)
			if (seen.qpn[j] == members[i]->qpn)
				break;
		if (j == count)
			return ktap_fail("device does not list QP %u in %s",
					 members[i]->qpn, gid_text(group));
	}
	gid_multicast_mac(group, mac);
	if (count && memcmp(mac, seen.mac, sizeof(mac)))
		return ktap_fail("device has %s at %s, the standard says %s",
				 gid_text(group), mac_text(seen.mac, text[0]),
				 mac_text(mac, text[1]));
	return PASS;
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
	verdict = device_has(&group, NULL, 0);
	for (i = 0; i < 3 && verdict == PASS; i++) {
		verdict = bench_party(bench, 0, CASE_FAMILY(arg), &member[i]);
		if (verdict == PASS)
			verdict = bench_attach(member[i], &group);
		if (verdict == PASS)
			verdict = device_has(&group, member, i + 1);
	}
	/* The first leaves first, so that the others have to close ranks. */
	for (i = 0; i < 3 && verdict == PASS; i++) {
		verdict = bench_detach(member[i], &group);
		if (verdict == PASS)
			verdict = device_has(&group, &member[i + 1], 2 - i);
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

/* Starts "mcast-check --hold GROUP" and waits until it is attached. */
static int start_holder(const struct device *device, const char *group,
			pid_t *child)
{
	char *const argv[] = { "mcast-check", "--device", (char *)device->name,
			       "--hold", (char *)group, NULL };
	posix_spawn_file_actions_t actions;
	struct pollfd wait = { .events = POLLIN };
	int ends[2], err;
	char byte;

	if (pipe(ends))
		return errno;
	wait.fd = ends[0];
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_addclose(&actions, ends[0]);
	err = posix_spawn(child, "/proc/self/exe", &actions, NULL, argv,
			  environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (!err && poll(&wait, 1, 3 * WAIT_MS) != 1)
		err = ETIMEDOUT;
	if (!err && read(ends[0], &byte, 1) != 1)
		err = ECHILD;
	close(ends[0]);
	return err;
}

enum verdict case_killed(void *context, int arg)
{
	struct bench *bench = context;
	enum verdict verdict = PASS;
	struct nic_group seen = { 0 };
	union ibv_gid group;
	pid_t child = -1;
	int err;

	if (!nic_available())
		return no_card(bench);
	group = bench_group(bench, CASE_FAMILY(arg));
	err = start_holder(bench->device, gid_text(&group), &child);
	if (err)
		verdict = ktap_fail("start a process attached to %s: %s",
				    gid_text(&group), strerror(err));
	if (verdict == PASS) {
		err = nic_group(&group, &seen);
		if (err || seen.members != 1)
			verdict = ktap_fail("device lists %u members of %s while the process lives",
					    seen.members, gid_text(&group));
	}
	if (child > 0) {
		kill(child, SIGKILL);
		/* The kernel has closed its files once it can be reaped. */
		waitpid(child, NULL, 0);
	}
	return verdict == PASS ? device_has(&group, NULL, 0) : verdict;
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
