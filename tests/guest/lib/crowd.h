/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Many queue pairs in many groups, for benchmarks: queue pairs that only join.
 */
#ifndef GUEST_CROWD_H
#define GUEST_CROWD_H

#include <stdint.h>
#include <infiniband/verbs.h>

#include "device.h"

struct crowd {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp **qps;
	uint32_t qp_count;
	uint32_t groups;	/* that the crowd is in, from number @base on */
	uint32_t base;
};

/* The address of group @number: 239.@octet.x.y; @number is below 65536. */
union ibv_gid crowd_group(uint8_t octet, uint32_t number);

/* Makes @qp_count UD queue pairs. Returns 0 or an errno, and says what failed. */
int crowd_open(struct crowd *crowd, const struct device *device, uint32_t qp_count);
/* Also leaves all groups. Returns 0, or the errno of what failed first. */
int crowd_close(struct crowd *crowd);

/* Joins groups 239.100.x.y until it is in @groups of them, spread over the queue pairs. */
int crowd_join(struct crowd *crowd, uint32_t groups);

#endif
