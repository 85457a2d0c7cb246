// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <string.h>

#include "cases.h"

/* A receiver here that nobody has joined anything for. */
static enum verdict raw_member(struct check *check, const union ibv_gid *group,
			       struct party **party)
{
	enum verdict verdict = bench_party(&check->bench, 0, gid_family(group),
					   party);

	return verdict == PASS ? bench_attach(*party, group) : verdict;
}

static enum verdict deliver(struct check *check, const union ibv_gid *group,
			    struct party *party, uint32_t copies)
{
	struct shot shot;
	enum verdict verdict = step_send(check, group, &shot);

	return verdict == PASS ?
		       bench_expect(&check->bench, &shot, party, copies) :
		       verdict;
}

/* "A join request must be sent so that the fabric delivers." @arg: the family. */
enum verdict case_attach_needs_join(void *context, int arg)
{
	struct check *check = context;
	struct node *here = &check->bench.nodes[0];
	union ibv_gid group;
	struct party *party;
	enum verdict verdict;

	group = arg == IPV4 ? check_group(check, OTHER) :
			      bench_group(&check->bench, IPV6);
	verdict = raw_member(check, &group, &party);
	if (verdict == PASS)
		verdict = deliver(check, &group, party, 0);
	if (verdict == PASS)
		verdict = bench_errno("join of the host",
				      node_host_join(here, &group), 0);
	if (verdict == PASS)
		verdict = deliver(check, &group, party, 1);
	if (verdict == PASS)
		verdict = bench_errno("leave of the host",
				      node_host_leave(here, &group), 0);
	if (verdict == PASS)
		verdict = step_switch(&group, false);
	return verdict == PASS ? deliver(check, &group, party, 0) : verdict;
}

/* "Attached multiple times, ... still a single copy"; detached, none. */
enum verdict case_attach_twice(void *context, int arg)
{
	struct check *check = context;
	struct node *here = &check->bench.nodes[0];
	union ibv_gid group = check_group(check, OTHER);
	struct party *party;
	enum verdict verdict = raw_member(check, &group, &party);

	(void)arg;
	if (verdict == PASS)
		verdict = bench_errno("join of the host",
				      node_host_join(here, &group), 0);
	if (verdict == PASS)
		verdict = bench_attach(party, &group);
	if (verdict == PASS)
		verdict = deliver(check, &group, party, 1);
	if (verdict == PASS)
		verdict = bench_detach(party, &group);
	return verdict == PASS ? deliver(check, &group, party, 0) : verdict;
}

/* What is no group, or was not attached, gives the value of errno. */
enum verdict case_attach_refusals(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group = check_group(check, OTHER), one;
	struct party *party;
	enum verdict verdict = bench_party(&check->bench, 0, IPV4, &party);

	(void)arg;
	if (verdict != PASS)
		return verdict;
	one = *node_gid(party->node, IPV4);
	verdict = bench_errno("attach to an address of one machine",
			      node_attach(party->node, party->id, &one, 0),
			      EINVAL);
	if (verdict == PASS)
		verdict = bench_errno("detach of what is not attached",
				      node_detach(party->node, party->id,
						  &group, 0), EINVAL);
	return verdict;
}

/* Groups are for datagrams: a connected queue pair is refused. */
enum verdict case_attach_connected(void *context, int arg)
{
	struct check *check = context;
	union ibv_gid group = check_group(check, OTHER);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct member connected;
	enum verdict verdict;
	int err;

	(void)arg;
	err = member_open(&connected, RDMA_PS_TCP);
	if (err)
		return ktap_fail("rdma_create_id: %s", strerror(err));
	err = member_bind(&connected, node_gid(&check->bench.nodes[0], IPV4));
	if (!err && rdma_create_qp(connected.id, NULL, &attr))
		err = errno;
	if (err) {
		verdict = ktap_fail("make a queue pair of type RC: %s",
				    strerror(err));
	} else {
		verdict = bench_errno("attach", ibv_attach_mcast(connected.id->qp,
								 &group, 0),
				      EINVAL);
		rdma_destroy_qp(connected.id);
	}
	err = member_close(&connected);
	return verdict == PASS ? bench_errno("rdma_destroy_id", err, 0) :
				 verdict;
}
