/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Threads that attach to and detach from a few groups, each its own queue pairs
 * in an order of its own, while other processes may do the same to the groups.
 */
#ifndef MCAST_SHELL_STORM_H
#define MCAST_SHELL_STORM_H

#include "endpoint.h"
#include "team.h"

#define STORM_GROUPS 64
#define STORM_ENDPOINTS 64
/* Room for all errnos. */
#define STORM_ERRNOS 256

struct storm {
	/* Those open take part; the n-th belongs to thread n modulo @threads. */
	struct endpoint *endpoints;
	unsigned int count;	/* at most STORM_ENDPOINTS */

	unsigned int threads;	/* 1 to TEAM_MAX */
	unsigned int groups;	/* 1 to STORM_GROUPS, of both families in turn */
	unsigned int steps;	/* of each thread */
	unsigned int seed;
	unsigned int leave;	/* percent of steps in which who can leave does */

	/* How often what failed with which errno, by thread. */
	unsigned int attach[TEAM_MAX][STORM_ERRNOS];
	unsigned int detach[TEAM_MAX][STORM_ERRNOS];
};

/* The group number @n of a storm: 239.66.0.N or ff0e::66:N. */
union ibv_gid storm_group(unsigned int n);

/* Runs it to its end. The endpoints keep what they are attached to then. */
void storm_run(struct storm *storm);

#endif
