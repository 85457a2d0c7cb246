/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The cases of mcast-race: threads that attach and detach at the same moment,
 * and what the device holds afterwards. The argument is the number of threads.
 */
#ifndef MCAST_RACE_CASES_H
#define MCAST_RACE_CASES_H

#include <stdbool.h>

#include "bench.h"
#include "team.h"

/* What the cases share; the bench comes first, so that its users find it. */
struct race {
	struct bench bench;
	unsigned int rounds;
};

/* create.c: a group that does not exist yet. */
enum verdict case_create_together(void *race, int arg);

/* join.c: a group that exists. */
enum verdict case_join_together(void *race, int arg);
enum verdict case_join_slow_device(void *race, int arg);

/* storm.c: all against all. */
enum verdict case_storm(void *race, int arg);
enum verdict case_storm_failing(void *race, int arg);

/* refuse.c: the device refuses to make the group. */
enum verdict case_create_refused(void *race, int arg);
enum verdict case_create_refused_together(void *race, int arg);

/* first.c: the first datagram after an attach. */
enum verdict case_first_datagram(void *race, int arg);

/* hold.c: what the device holds. */
/* The device lists @group once, with exactly these members. */
enum verdict holds_exactly(const union ibv_gid *group, struct party **members,
			   unsigned int count);
/* One datagram from a party of its own reaches each member once. */
enum verdict all_receive(struct bench *bench, const union ibv_gid *group,
			 struct party **members, unsigned int count);
enum verdict case_no_violation(void *race, int arg);
enum verdict case_nothing_left(void *race, int arg);
enum verdict case_all_destroyed(void *race, int arg);

#endif
