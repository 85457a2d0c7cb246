/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Threads that do something at the same moment.
 */
#ifndef GUEST_TEAM_H
#define GUEST_TEAM_H

#include <pthread.h>

#define TEAM_MAX 32

struct team {
	unsigned int size;
	void *context;
	pthread_barrier_t barrier;
	int err[TEAM_MAX];	/* what each thread's work returned */
};

/*
 * Runs @work(team, index) in @size threads, all at once, and waits for them; what
 * each returned is in @team->err. The program ends if the threads cannot be had:
 * those that are there already would wait for the rest.
 */
void team_run(struct team *team, unsigned int size,
	      int (*work)(struct team *team, unsigned int index), void *context);

/* Waits until every thread of the team has come to its call. */
void team_meet(struct team *team);

/* The next number, below 65536, of a sequence that is the same in every run. */
unsigned int team_random(unsigned int *state);

/* The first result that is not 0, or 0. */
int team_error(const struct team *team);

#endif
