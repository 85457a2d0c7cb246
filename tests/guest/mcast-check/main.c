// SPDX-License-Identifier: GPL-2.0
/*
 * mcast-check: judges a device's multicast through unmodified libibverbs.
 *
 * On one machine it checks members among themselves. With --follow on other
 * machines and their addresses given here it checks members spread over all.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "command.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A row of the tables below: one case for each family, or a single one. */
struct row {
	const char *name;
	enum verdict (*run)(void *bench, int arg);
	unsigned int number;
	bool once;
};

static const struct row here[] = {
	{ "1 member here, one copy", case_members_here, 1, false },
	{ "2 members here, one copy each", case_members_here, 2, false },
	{ "3 members here, one copy each", case_members_here, 3, false },
	{ "4 members here, one copy each", case_members_here, 4, false },
	{ "5 members here, one copy each", case_members_here, 5, false },
	{ "6 members here, one copy each", case_members_here, 6, false },
	{ "7 members here, one copy each", case_members_here, 7, false },
	{ "8 members here, one copy each", case_members_here, 8, false },
	{ "sender that is a member gets its copy", case_sender_is_member, 0, false },
	{ "joins, leaves, joins again", case_join_and_leave, 0, false },
	{ "attached twice, one copy, one detach", case_duplicate_attach, 0, false },
	{ "two MLIDs, one copy, two detaches", case_two_lids, 0, false },
	{ "any MLID is accepted", case_any_lid, 0, false },
	{ "detach of what is not attached is EINVAL", case_detach_stranger, 0, false },
	{ "destroy while attached is EBUSY", case_destroy_attached, 0, false },
	{ "one member too many is ENOMEM", case_full_group, 0, false },
	{ "attach of an RC QP is EINVAL", case_other_qp_type, 0, false },
	{ "attach of a UC QP is EINVAL", case_other_qp_type, 1, true },
	{ "attach of a raw packet QP is EINVAL", case_other_qp_type, 2, true },
	{ "attach to unicast addresses is EINVAL", case_unicast_gid, 0, true },
	{ "device lists members and standard MAC", case_device_view, 0, false },
	{ "process killed while attached leaves nothing", case_killed, 0, false },
};

static const struct row any_nodes[] = {
	{ "payload of 0 bytes", case_size, 0, false },
	{ "payload of 1 byte", case_size, 1, false },
	{ "payload of 1024 bytes", case_size, 1024, false },
	{ "payload that fills the MTU", case_size_of_mtu, 0, false },
	{ "nothing longer than the MTU arrives", case_longer_than_mtu, 0, false },
	{ "immediate data", case_immediate, 0, false },
	{ "inline payload", case_inline, 0, false },
	{ "member of two groups gets each once", case_two_groups, 0, false },
	{ "500 datagrams arrive, in order", case_stream, 0, false },
	{ "member with another Q_Key gets none", case_wrong_qkey, 0, false },
	{ "member without a receive loses only its copy", case_no_receive, 0, false },
	{ "member in error loses only its copy", case_member_in_error, 0, false },
	{ "8 members, the 1st in error: 7 intact copies", case_bad_member, 0, false },
	{ "8 members, the 4th with another Q_Key: 7 intact copies", case_bad_member, 1, false },
	{ "8 members, the 8th without a receive: 7 intact copies", case_bad_member, 2, false },
	{ "groups that differ in one bit: 3 members each, first datagram arrives",
	  case_one_bit_groups, 0, false },
};

static const struct row spread[] = {
	{ "1 member on another node, one copy", case_members_spread, 1, false },
	{ "2 members on all nodes, one copy each", case_members_spread, 2, false },
	{ "3 members on all nodes, one copy each", case_members_spread, 3, false },
	{ "4 members on all nodes, one copy each", case_members_spread, 4, false },
	{ "5 members on all nodes, one copy each", case_members_spread, 5, false },
	{ "6 members on all nodes, one copy each", case_members_spread, 6, false },
	{ "7 members on all nodes, one copy each", case_members_spread, 7, false },
	{ "8 members on all nodes, one copy each", case_members_spread, 8, false },
	{ "sender is a member, 2 near, 1 far: one copy each, one on the wire",
	  case_once_on_the_wire, 0, false },
};

static const struct row limits[] = {
	{ "exactly max_mcast_grp groups can be had", case_group_limit, 0, true },
};

static const struct row last[] = {
	{ "every queue pair could be destroyed", case_all_destroyed, 0, true },
	{ "device holds no group in the end", case_nothing_left, 0, true },
};

static void after(void *context)
{
	bench_clear(context);
}

/* The cases to run, made from the rows. */
struct plan {
	struct test_case cases[160];
	char names[160][80];
	size_t count;
};

static void add_case(struct plan *plan, const struct row *row,
		     enum family family)
{
	char *name = plan->names[plan->count];
	struct test_case *test = &plan->cases[plan->count];

	if (row->once)
		snprintf(name, sizeof(plan->names[0]), "%s", row->name);
	else
		snprintf(name, sizeof(plan->names[0]), "IPv%d group: %s",
			 family, row->name);
	test->name = name;
	test->run = row->run;
	test->arg = CASE_ARG(family, row->number);
	plan->count++;
}

static void add_rows(struct plan *plan, const struct row *rows, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		add_case(plan, &rows[i], IPV4);
		if (!rows[i].once)
			add_case(plan, &rows[i], IPV6);
	}
}

static int lead(struct device *device, char **addresses, int count,
		const char *only, bool with_limits, unsigned int bursts)
{
	static struct plan plan;
	static struct bench bench;
	int i, failures;

	bench.device = device;
	bench.next_token = 1000;
	bench.bursts = bursts;
	if (node_local(&bench.nodes[0], device))
		return EXIT_FAILURE;
	bench.node_count = 1;
	for (i = 0; i < count; i++) {
		if (bench.node_count == MAX_NODES) {
			fprintf(stderr, "mcast-check: at most %d nodes\n",
				MAX_NODES);
			return EXIT_FAILURE;
		}
		if (node_connect(&bench.nodes[bench.node_count], addresses[i],
				 6 * WAIT_MS))
			return EXIT_FAILURE;
		bench.node_count++;
	}

	if (bench.node_count == 1)
		add_rows(&plan, here, COUNT(here));
	else
		add_rows(&plan, spread, COUNT(spread));
	add_rows(&plan, any_nodes, COUNT(any_nodes));
	if (with_limits)
		add_rows(&plan, limits, COUNT(limits));
	add_rows(&plan, last, COUNT(last));

	failures = ktap_run(plan.cases, plan.count, only, &bench, after);
	while (bench.node_count)
		node_close(&bench.nodes[--bench.node_count]);
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	const char *name = NULL, *only = NULL, *hold = NULL;
	bool follow = false, with_limits = false;
	uint32_t bursts = 2;
	const struct choice choices[] = {
		CHOICE_DEVICE(&name),
		CHOICE_ONLY(&only),
		CHOICE_FLAG('l', "limits", &with_limits,
			    "also fill the device's group table"),
		CHOICE_NUMBER('b', "bursts", "N", &bursts,
			      "bursts of 100 for 8 members of which one is bad (default 2)"),
		CHOICE_FLAG('f', "follow", &follow,
			    "serve the leader, which runs on another node"),
		/* What a case here starts, to kill it. */
		CHOICE_TEXT('H', "hold", "GROUP", &hold, NULL),
	};
	const struct command command = {
		.name = "mcast-check",
		.words = "[OPTION]... [NODE-ADDRESS]...\n--follow",
		.about = "Check multicast of an RDMA device; results in KTAP.",
		COMMAND_CHOICES(choices),
	};
	int words = command_read(&command, argc, argv), status;
	struct device device;

	if (device_open(&device, name))
		return EXIT_FAILURE;
	if (hold)
		status = hold_group(&device, hold) ? EXIT_FAILURE : EXIT_SUCCESS;
	else if (follow)
		status = node_serve(&device, 6 * WAIT_MS) ? EXIT_FAILURE :
							    EXIT_SUCCESS;
	else
		status = lead(&device, argv + words, argc - words, only,
			      with_limits, bursts);
	device_close(&device);
	return status;
}
