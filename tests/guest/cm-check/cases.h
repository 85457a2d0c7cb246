/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The cases of cm-check and the steps they are made of. Each has a sentence of a
 * man page, in other words, for its name; see the table in main.c.
 *
 * Members are identifiers of rdma_cm on this node, the sender is a queue pair on
 * another node if there is one.
 */
#ifndef CM_CHECK_CASES_H
#define CM_CHECK_CASES_H

#include "bench.h"
#include "member.h"

#define MAX_MEMBERS 16

/* Which range of addresses a case takes its group from; the capture is judged by it. */
enum use {
	JOINED,		/* 239.76.0.0/16: IGMP has to be seen */
	SEND_ONLY,	/* 239.77.0.0/16: IGMP must not be seen */
	OTHER,		/* 239.78.0.0/16 */
};

struct check {
	struct bench bench;
	struct member members[MAX_MEMBERS];
	struct party *seats[MAX_MEMBERS];	/* NULL: has no queue pair */
	unsigned int member_count;
	uint32_t next_group[3];
};

/* A group that no other case has used. */
union ibv_gid check_group(struct check *check, enum use use);

/* An identifier, not bound. */
enum verdict step_open(struct check *check, struct member **member);
/* One that is bound to this node's address of @family. */
enum verdict step_bound(struct check *check, enum family family,
			struct member **member);
/* Its queue pair. */
enum verdict step_queue_pair(struct check *check, struct member *member);
/* All of it, IPv4. */
enum verdict step_member(struct check *check, struct member **member);
/* The party that stands for a member's queue pair. */
struct party *seat_of(struct check *check, const struct member *member);

/* Joins and fetches the event, which has to say that all is well. */
enum verdict step_join(struct member *member, const union ibv_gid *group);
enum verdict step_join_as(struct member *member, const union ibv_gid *group,
			  enum rdma_cm_mc_join_flags flags);
/* @count new members that have joined @group. */
enum verdict step_members(struct check *check, const union ibv_gid *group,
			  struct member **members, int count);
/* Fetches the next event, which has to be a join's, with success. */
enum verdict step_joined(struct member *member, struct member_event *event);
enum verdict step_leave(struct member *member, const union ibv_gid *group);

/* How many users on this machine the kernel counts in @group. */
enum verdict step_host(const struct member *member, const union ibv_gid *group,
		       int users);
/* Waits until the switch does, or does not, send @group here. */
enum verdict step_switch(const union ibv_gid *group, bool here);
/* The device lists @group with @member's queue pair only, or not at all if NULL. */
enum verdict step_device(struct check *check, const union ibv_gid *group,
			 const struct member *member);
/* All three of a full member. */
enum verdict step_full(struct check *check, const union ibv_gid *group,
		       struct member *member);
/* A new member that has joined @group, and all three of it. */
enum verdict step_full_member(struct check *check, const union ibv_gid *group,
			      struct member **member);
/* Nobody here is in @group: not the host, not the switch, not the device. */
enum verdict step_nobody(struct check *check, const union ibv_gid *group,
			 const struct member *member);

/* Has a new sender send a datagram to @group; bench_expect() judges who gets it. */
enum verdict step_send(struct check *check, const union ibv_gid *group,
		       struct shot *shot);
/* The same, and judges that @member's queue pair gets @copies of it. */
enum verdict step_deliver(struct check *check, const union ibv_gid *group,
			  struct member *member, uint32_t copies);
/* A receiver that is in @group by hand, on the other node if there is one. */
enum verdict step_receiver(struct check *check, const union ibv_gid *group,
			   struct party **receiver);

/* join.c: rdma_join_multicast(3). */
enum verdict case_join(void *check, int arg);
enum verdict case_join_context(void *check, int arg);
enum verdict case_join_event_fields(void *check, int arg);
enum verdict case_join_attached_at_event(void *check, int arg);
enum verdict case_join_by_hand(void *check, int arg);
enum verdict case_join_lasts(void *check, int arg);
enum verdict case_join_two_ids(void *check, int arg);
enum verdict case_join_many(void *check, int arg);

/* bound.c: what an identifier must be bound to, and how. */
enum verdict case_unbound(void *check, int arg);
enum verdict case_resolved_from(void *check, int arg);
enum verdict case_resolved_by_route(void *check, int arg);

/* qkey.c: what a member can change of what its join gave. */
enum verdict case_join_qkeys(void *check, int arg);

/* options.c: rdma_join_multicast_ex(3). */
enum verdict case_full_member(void *check, int arg);
enum verdict case_send_only(void *check, int arg);
enum verdict case_send_only_silent(void *check, int arg);
enum verdict case_send_only_not_attached(void *check, int arg);
enum verdict case_send_only_leaves(void *check, int arg);

/* leave.c: rdma_leave_multicast(3). */
enum verdict case_leave(void *check, int arg);
enum verdict case_leave_cancels(void *check, int arg);
enum verdict case_leave_queued(void *check, int arg);
enum verdict case_leave_in_traffic(void *check, int arg);
enum verdict case_destroy_leaves(void *check, int arg);

/* attach.c: ibv_attach_mcast(3). */
enum verdict case_attach_needs_join(void *check, int arg);
enum verdict case_attach_twice(void *check, int arg);
enum verdict case_attach_refusals(void *check, int arg);
enum verdict case_attach_connected(void *check, int arg);

/* refusals.c: calls that have to fail. */
enum verdict case_join_refused(void *check, int arg);
enum verdict case_ex_refused(void *check, int arg);
enum verdict case_leave_refused(void *check, int arg);
enum verdict case_ipv6_group(void *check, int arg);
enum verdict case_attach_fails(void *check, int arg);
enum verdict case_full_group(void *check, int arg);

/* service.c: datagram services and addresses of machines, found by rdma_cm. */
enum verdict case_no_service(void *check, int arg);
enum verdict case_rejected(void *check, int arg);
enum verdict case_no_machine(void *check, int arg);

/* life.c: identifiers, queue pairs and processes that end. */
enum verdict case_killed(void *check, int arg);
enum verdict case_careless(void *check, int arg);
enum verdict case_destroyed_at_once(void *check, int arg);
enum verdict case_all_destroyed(void *check, int arg);
enum verdict case_nothing_left(void *check, int arg);

/*
 * The other processes of life.c: join @group with a queue pair from the address of
 * @device, say so on stdout, and stay. @careless destroys the queue pair before it
 * leaves.
 */
int hold_group(const struct device *device, const char *group, bool careless);

#endif
