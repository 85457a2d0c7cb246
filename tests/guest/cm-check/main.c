// SPDX-License-Identifier: GPL-2.0
/*
 * cm-check: judges multicast through rdma_cm, with unmodified librdmacm.
 *
 * Each case is a statement of rdma_join_multicast(3), rdma_join_multicast_ex(3),
 * rdma_leave_multicast(3) or ibv_attach_mcast(3), or of what rdma_get_cm_event(3) says
 * of services and addresses that cannot be reached. With --follow on another machine
 * and its address given here, what is sent comes from there, and through a switch;
 * if that snoops, the virtual fabric is asked what it has heard.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "command.h"
#include "host.h"

/* The cases; some need another machine, as on one alone the device loops back. */
static const struct row {
	const char *name;
	enum verdict (*run)(void *check, int arg);
	int arg;
	bool apart;
} rows[] = {
	{ "join: the group is joined and the identifier's queue pair attached",
	  case_join, 0, false },
	{ "join: each event has the context of its join", case_join_context, 0, false },
	{ "join: the event says where to send: address, QP 0xffffff, Q_Key 0x01234567",
	  case_join_event_fields, 0, false },
	{ "join: a member with a Q_Key of its own loses its copy only, and has what is sent with that",
	  case_join_qkeys, 0, false },
	{ "join: the queue pair is attached when the event is fetched, not before",
	  case_join_attached_at_event, 0, false },
	{ "join: without a queue pair nothing is attached; by hand it is",
	  case_join_by_hand, 0, false },
	{ "join: it lasts, and the switch's queries are answered", case_join_lasts, 0, false },
	{ "join: two identifiers in one group; the last one leaves for the host",
	  case_join_two_ids, 0, false },
	{ "join: 100 groups of one identifier reach the switch", case_join_many, 0, false },
	{ "join: an identifier that is not bound is EINVAL", case_unbound, 0, false },
	{ "join: bound by rdma_resolve_addr from an address, without a route",
	  case_resolved_from, 0, false },
	{ "join: bound by rdma_resolve_addr by a route, and not without one",
	  case_resolved_by_route, 0, false },
	{ "join: the zero address, no address, and a connected identifier are EINVAL",
	  case_join_refused, 0, false },
	{ "join: an IPv6 group is errno 524 from an IPv6 address; by hand it works",
	  case_ipv6_group, IPV6, false },
	{ "join: an IPv6 group is errno 524 from an IPv4 address; by hand it works",
	  case_ipv6_group, IPV4, false },
	{ "join: a queue pair that cannot be attached is MULTICAST_ERROR",
	  case_attach_fails, 0, false },
	{ "join: one member too many is MULTICAST_ERROR, the others are served",
	  case_full_group, 0, false },

	{ "join_ex: a full member sends and receives", case_full_member, 0, false },
	{ "join_ex: a send-only member sends and does not receive", case_send_only, 0, false },
	{ "join_ex: a send-only join sends no IGMP", case_send_only_silent, 0, false },
	{ "join_ex: a send-only join does not attach the queue pair",
	  case_send_only_not_attached, 0, false },
	{ "join_ex: a send-only member that leaves takes nothing from a full one",
	  case_send_only_leaves, 0, false },
	{ "join_ex: each event has the context of its join", case_join_context, 1, false },
	{ "join_ex: an identifier that is not bound is EINVAL", case_unbound, 1, false },
	{ "join_ex: send-only with an identifier that is not bound is EINVAL",
	  case_unbound, 2, false },
	{ "join_ex: masks and flags that do not exist are refused", case_ex_refused, 0, false },

	{ "leave: the group is left and the queue pair detached", case_leave, 0, false },
	{ "leave: the same of a join by _ex", case_leave, 1, false },
	{ "leave: before the event is fetched it cancels the join", case_leave_cancels, 0, false },
	{ "leave: what was received before can still be polled", case_leave_queued, 0, false },
	{ "leave: in the middle of traffic; nothing comes afterwards",
	  case_leave_in_traffic, 0, false },
	{ "leave: destroying the identifier leaves all groups", case_destroy_leaves, 0, false },
	{ "leave: what was not joined, or was left, is EADDRNOTAVAIL",
	  case_leave_refused, 0, false },

	{ "attach: an IPv4 group that nobody joined does not come through the switch; "
	  "joined it does",
	  case_attach_needs_join, IPV4, true },
	{ "attach: an IPv6 group that nobody joined does not come through the switch; "
	  "joined it does",
	  case_attach_needs_join, IPV6, true },
	{ "attach: several times, one copy; detached, none", case_attach_twice, 0, false },
	{ "attach: an address of one machine, and detach of what is not attached, are EINVAL",
	  case_attach_refusals, 0, false },
	{ "attach: the queue pair of a connected identifier, RC, is EINVAL",
	  case_attach_connected, 0, false },

	{ "connect: a service that nobody offers is UNREACHABLE, status 1 (SIDR: not supported); IPv4",
	  case_no_service, IPV4, false },
	{ "connect: a service that nobody offers is UNREACHABLE, status 1 (SIDR: not supported); IPv6",
	  case_no_service, IPV6, false },
	{ "connect: rejected is UNREACHABLE, status 2 (SIDR: rejected); accepted has the queue pair; IPv4",
	  case_rejected, IPV4, false },
	{ "connect: rejected is UNREACHABLE, status 2 (SIDR: rejected); accepted has the queue pair; IPv6",
	  case_rejected, IPV6, false },
	{ "resolve: an address that no machine has is ADDR_ERROR, ETIMEDOUT; another can follow; IPv4",
	  case_no_machine, IPV4, false },
	{ "resolve: an address that no machine has is ADDR_ERROR, ETIMEDOUT; another can follow; IPv6",
	  case_no_machine, IPV6, false },

	{ "end: a process that is killed has left", case_killed, 0, false },
	{ "end: a queue pair destroyed before it left goes with its process",
	  case_careless, 0, false },
	{ "end: 1000 identifiers destroyed right after they joined",
	  case_destroyed_at_once, 0, false },
	{ "end: every queue pair could be destroyed", case_all_destroyed, 0, false },
	{ "end: the device holds no group", case_nothing_left, 0, false },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* Leaves and destroys all that a case has made. */
static void clear(void *context)
{
	struct check *check = context;
	unsigned int i;
	int err;

	for (i = 0; i < check->member_count; i++)
		member_leave_all(&check->members[i]);
	bench_clear(&check->bench);
	host_leave_all();
	for (i = 0; i < check->member_count; i++) {
		err = member_close(&check->members[i]);
		if (err)
			ktap_note("rdma_destroy_id after the case: %s",
				  strerror(err));
	}
	check->member_count = 0;
}

static int lead(struct device *device, const char *address, const char *only)
{
	static struct test_case cases[ROWS];
	static struct check check;
	size_t count = 0, i;
	int failures;

	check.bench.device = device;
	check.bench.next_token = 1000;
	if (node_local(&check.bench.nodes[0], device))
		return EXIT_FAILURE;
	check.bench.node_count = 1;
	if (address) {
		if (node_connect(&check.bench.nodes[1], address, 6 * WAIT_MS))
			return EXIT_FAILURE;
		check.bench.node_count = 2;
	}
	for (i = 0; i < ROWS; i++)
		if (address || !rows[i].apart)
			cases[count++] = (struct test_case){
				.name = rows[i].name,
				.run = rows[i].run,
				.arg = rows[i].arg,
			};
	failures = ktap_run(cases, count, only, &check, clear);
	while (check.bench.node_count)
		node_close(&check.bench.nodes[--check.bench.node_count]);
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	const char *name = NULL, *only = NULL, *hold = NULL, *careless = NULL;
	const char *netdev = NULL;
	bool follow = false;
	const struct choice choices[] = {
		CHOICE_DEVICE(&name),
		CHOICE_TEXT('n', "netdev", "NAME", &netdev,
			    "use the addresses of this interface, such as a VLAN"),
		CHOICE_ONLY(&only),
		CHOICE_FLAG('f', "follow", &follow,
			    "serve the leader, which runs on another node"),
		/* What cases here start, to kill it. */
		CHOICE_TEXT('H', "hold", "GROUP", &hold, NULL),
		CHOICE_TEXT('C', "careless", "GROUP", &careless, NULL),
	};
	const struct command command = {
		.name = "cm-check",
		.words = "[OPTION]... [NODE-ADDRESS]\n--follow",
		.about = "Check multicast of an RDMA device through rdma_cm; results in KTAP.",
		COMMAND_CHOICES(choices),
	};
	int words = command_read(&command, argc, argv), status;
	struct device device;

	if (argc - words > 1)
		return command_refuse(&command, "more than one address");
	if (device_open(&device, name))
		return EXIT_FAILURE;
	device.netdev = netdev;
	if (hold || careless)
		status = hold_group(&device, hold ? hold : careless, careless) ?
				 EXIT_FAILURE : EXIT_SUCCESS;
	else if (follow)
		status = node_serve(&device, 6 * WAIT_MS) ? EXIT_FAILURE :
							    EXIT_SUCCESS;
	else
		status = lead(&device, argv[words], only);
	device_close(&device);
	return status;
}
