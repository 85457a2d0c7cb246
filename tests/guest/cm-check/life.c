// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"
#include "child.h"

/* Identifiers that are destroyed right after they joined. */
#define AT_ONCE 1000

int hold_group(const struct device *device, const char *text, bool careless)
{
	static struct member member;
	static struct endpoint endpoint;
	struct member_event event;
	union ibv_gid address, group;
	int index, err;

	if (!gid_parse(text, &group))
		return EINVAL;
	err = device_gid(device, IPV4, &address, &index);
	if (!err)
		err = member_open(&member, RDMA_PS_UDP);
	if (!err)
		err = member_bind(&member, &address);
	if (!err)
		err = member_endpoint(&member, &endpoint, DEFAULT_DEPTH);
	if (!err)
		err = member_join(&member, &group, NULL);
	if (!err)
		err = member_event(&member, &event);
	if (!err && event.type != RDMA_CM_EVENT_MULTICAST_JOIN)
		err = EPROTO;
	if (!err && careless) {
		rdma_destroy_qp(member.id);
		err = member_leave(&member, &group);
	}
	if (err) {
		fprintf(stderr, "hold %s: %s\n", text, strerror(err));
		return err;
	}
	puts("joined");
	fflush(stdout);
	for (;;)
		pause();
}

/* Starts "cm-check --hold GROUP", or with another option. */
static enum verdict run_child(struct check *check, const char *option,
			      const union ibv_gid *group, pid_t *child)
{
	struct device *device = check->bench.device;
	char *argv[8] = { NULL };
	int err;

	argv[0] = "cm-check";
	argv[1] = "--device";
	argv[2] = device->name;
	argv[3] = (char *)option;
	argv[4] = (char *)gid_text(group);
	if (device->netdev) {
		argv[5] = "--netdev";
		argv[6] = (char *)device->netdev;
	}
	err = child_start(argv, child);

	return err ? ktap_fail("process that joins %s: %s",
			       gid_text(group), strerror(err)) : PASS;
}

/* A process that is killed while it is a member leaves nothing behind. */
enum verdict case_killed(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group = check_group(check, JOINED);
	struct nic_group seen = { 0 };
	struct member *watcher;
	pid_t child = -1;
	enum verdict verdict = step_bound(check, IPV4, &watcher);

	(void)arg;
	if (verdict == PASS)
		verdict = run_child(check, "--hold", &group, &child);
	if (verdict == PASS)
		verdict = step_host(watcher, &group, 1);
	if (verdict == PASS)
		verdict = step_switch(&group, true);
	if (verdict == PASS && nic_available() &&
	    (nic_group(&group, &seen) || seen.members != 1))
		verdict = ktap_fail("device lists %u members of %s while the process lives",
				    seen.members, gid_text(&group));
	if (child > 0)
		child_kill(child);
	return verdict == PASS ? step_nobody(check, &group, watcher) : verdict;
}

/* How many queue pairs of process @pid the kernel lists; negative if it cannot be told. */
static int queue_pairs_of(pid_t pid)
{
	char line[512], wanted[32];
	int count = 0;
	FILE *list = popen("rdma resource show qp", "r");

	if (!list)
		return -1;
	snprintf(wanted, sizeof(wanted), " pid %d ", (int)pid);
	while (fgets(line, sizeof(line), list))
		count += strstr(line, wanted) && strstr(line, " type UD ");
	return pclose(list) ? -1 : count;
}

/*
 * The queue pair is destroyed before the group is left, which fails and is not
 * seen: it stays until the process ends, and no longer.
 */
enum verdict case_careless(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group = check_group(check, JOINED);
	struct member *watcher;
	pid_t child = -1;
	int before = -1, after = -1;
	enum verdict verdict = step_bound(check, IPV4, &watcher);

	(void)arg;
	if (verdict == PASS)
		verdict = run_child(check, "--careless", &group, &child);
	if (child > 0) {
		before = queue_pairs_of(child);
		child_kill(child);
		after = queue_pairs_of(child);
	}
	if (verdict == PASS && (before != 1 || after))
		verdict = ktap_fail("it has %d queue pairs, and %d after its end",
				    before, after);
	return verdict == PASS ? step_nobody(check, &group, watcher) : verdict;
}

/* An identifier that is destroyed before anybody asked for its events. */
enum verdict case_destroyed_at_once(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group = check_group(check, JOINED);
	const union ibv_gid *address = node_gid(&check->bench.nodes[0], IPV4);
	struct member *watcher;
	enum verdict verdict = step_bound(check, IPV4, &watcher);
	int i, err = 0;

	(void)arg;
	for (i = 0; i < AT_ONCE && verdict == PASS; i++) {
		struct member member;

		err = member_open(&member, RDMA_PS_UDP);
		if (!err)
			err = member_bind(&member, address);
		if (!err)
			err = member_join(&member, &group, NULL);
		member.joins = 0;
		if (!err)
			err = member_close(&member);
		if (err)
			verdict = ktap_fail("round %d: %s", i, strerror(err));
	}
	return verdict == PASS ? step_nobody(check, &group, watcher) : verdict;
}

enum verdict case_all_destroyed(void *context, int arg)
{
	struct check *check = context;

	(void)arg;
	if (check->bench.stuck)
		return ktap_fail("%u queue pairs could not be destroyed",
				 check->bench.stuck);
	return PASS;
}

enum verdict case_nothing_left(void *context, int arg)
{
	struct check *check = context;
	int groups;

	(void)arg;
	if (!nic_available())
		return ktap_skip("%s is no virtual card whose state could be asked",
				 check->bench.device->name);
	groups = nic_group_count();
	return groups ? ktap_fail("device holds %d groups", groups) : PASS;
}
