// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "team.h"

struct player {
	struct team *team;
	unsigned int index;
	int (*work)(struct team *team, unsigned int index);
	pthread_t thread;
};

void team_meet(struct team *team)
{
	pthread_barrier_wait(&team->barrier);
}

static void *play(void *data)
{
	struct player *player = data;
	struct team *team = player->team;

	team_meet(team);
	team->err[player->index] = player->work(team, player->index);
	return NULL;
}

void team_run(struct team *team, unsigned int size,
	      int (*work)(struct team *team, unsigned int index), void *context)
{
	struct player players[TEAM_MAX];
	unsigned int i;
	int err;

	memset(team, 0, sizeof(*team));
	team->size = size < TEAM_MAX ? size : TEAM_MAX;
	team->context = context;
	err = pthread_barrier_init(&team->barrier, NULL, team->size);
	for (i = 0; i < team->size && !err; i++) {
		players[i].team = team;
		players[i].index = i;
		players[i].work = work;
		err = pthread_create(&players[i].thread, NULL, play,
				     &players[i]);
	}
	if (err) {
		fprintf(stderr, "start %u threads: %s\n", size, strerror(err));
		exit(EXIT_FAILURE);
	}
	for (i = 0; i < team->size; i++)
		pthread_join(players[i].thread, NULL);
	pthread_barrier_destroy(&team->barrier);
}

unsigned int team_random(unsigned int *state)
{
	*state = *state * 1103515245 + 12345;
	return *state >> 16;
}

int team_error(const struct team *team)
{
	unsigned int i;

	for (i = 0; i < team->size; i++)
		if (team->err[i])
			return team->err[i];
	return 0;
}
