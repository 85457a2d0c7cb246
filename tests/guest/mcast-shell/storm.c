// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "storm.h"

union ibv_gid storm_group(unsigned int n)
{
	union ibv_gid group;

	gid_parse(n & 1 ? "ff0e::66:0" : "239.66.0.0", &group);
	group.raw[15] = (uint8_t)(n + 1);
	return group;
}

static bool is_in(const struct endpoint *endpoint, const union ibv_gid *group,
		  uint16_t lid)
{
	size_t i;

	for (i = 0; i < endpoint->attached; i++) {
		const struct attachment *at = &endpoint->attachments[i];

		if (at->lid == lid && !memcmp(&at->group, group, sizeof(*group)))
			return true;
	}
	return false;
}

static void count(unsigned int counts[STORM_ERRNOS], int err)
{
	if (err)
		counts[(unsigned int)err % STORM_ERRNOS]++;
}

/* Leaves a group that the endpoint is in. */
static int leave(struct endpoint *endpoint, unsigned int *state)
{
	struct attachment at =
		endpoint->attachments[team_random(state) % endpoint->attached];

	return endpoint_detach(endpoint, &at.group, at.lid);
}

static int work(struct team *team, unsigned int index)
{
	struct storm *storm = team->context;
	unsigned int state = storm->seed * TEAM_MAX + index + 1, step, i;
	struct endpoint *mine[STORM_ENDPOINTS];
	unsigned int owned = 0;

	for (i = index; i < storm->count; i += storm->threads)
		if (storm->endpoints[i].qp)
			mine[owned++] = &storm->endpoints[i];
	for (step = 0; owned && step < storm->steps; step++) {
		struct endpoint *endpoint = mine[team_random(&state) % owned];
		union ibv_gid group =
			storm_group(team_random(&state) % storm->groups);
		/* Two MLIDs: two uses of one member. */
		uint16_t lid = team_random(&state) & 1;

		if (endpoint->attached &&
		    team_random(&state) % 100 < storm->leave)
			count(storm->detach[index], leave(endpoint, &state));
		else if (is_in(endpoint, &group, lid))
			count(storm->detach[index],
			      endpoint_detach(endpoint, &group, lid));
		else
			count(storm->attach[index],
			      endpoint_attach(endpoint, &group, lid));
	}
	return 0;
}

void storm_run(struct storm *storm)
{
	struct team team;

	team_run(&team, storm->threads, work, storm);
}
