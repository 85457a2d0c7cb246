// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crowd.h"

#define CROWD_OCTET 100
#define CROWD_QKEY 0x01234567

union ibv_gid crowd_group(uint8_t octet, uint32_t number)
{
	union ibv_gid group = { .raw = { 0 } };

	group.raw[10] = 0xff;
	group.raw[11] = 0xff;
	group.raw[12] = 239;
	group.raw[13] = octet;
	group.raw[14] = (uint8_t)(number >> 8);
	group.raw[15] = (uint8_t)number;
	return group;
}

static int add_queue_pair(struct crowd *crowd)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.send_cq = crowd->cq,
		.recv_cq = crowd->cq,
		.cap = {
			.max_send_wr = 4,
			.max_recv_wr = 4,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qkey = CROWD_QKEY,
	};
	struct ibv_qp *qp = ibv_create_qp(crowd->pd, &init);

	if (!qp)
		return errno;
	crowd->qps[crowd->qp_count++] = qp;
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					IBV_QP_QKEY);
}

int crowd_open(struct crowd *crowd, const struct device *device, uint32_t qp_count)
{
	int err = 0;

	memset(crowd, 0, sizeof(*crowd));
	crowd->qps = calloc(qp_count ? qp_count : 1, sizeof(*crowd->qps));
	if (!crowd->qps) {
		err = ENOMEM;
		goto out;
	}
	crowd->pd = ibv_alloc_pd(device->context);
	if (!crowd->pd) {
		err = errno;
		goto out;
	}
	crowd->cq = ibv_create_cq(device->context, 64, NULL, NULL, 0);
	if (!crowd->cq) {
		err = errno;
		goto out;
	}
	while (!err && crowd->qp_count < qp_count)
		err = add_queue_pair(crowd);
out:
	if (err) {
		fprintf(stderr, "open queue pair %u of %u: %s\n", crowd->qp_count + 1, qp_count,
			strerror(err));
		crowd_close(crowd);
	}
	return err;
}

static struct ibv_qp *member(const struct crowd *crowd, uint32_t number)
{
	return crowd->qps[number % crowd->qp_count];
}

int crowd_join(struct crowd *crowd, uint32_t groups)
{
	while (crowd->groups < groups) {
		uint32_t number = crowd->base + crowd->groups;
		union ibv_gid group = crowd_group(CROWD_OCTET, number);
		int err = ibv_attach_mcast(member(crowd, number), &group, 0);

		if (err) {
			fprintf(stderr, "attach to group %u of %u: %s\n", crowd->groups + 1,
				groups, strerror(err));
			return err;
		}
		crowd->groups++;
	}
	return 0;
}

int crowd_close(struct crowd *crowd)
{
	int err = 0, ret;

	while (crowd->groups) {
		uint32_t number = crowd->base + --crowd->groups;
		union ibv_gid group = crowd_group(CROWD_OCTET, number);

		ret = ibv_detach_mcast(member(crowd, number), &group, 0);
		err = err ? err : ret;
	}
	while (crowd->qp_count) {
		ret = ibv_destroy_qp(crowd->qps[--crowd->qp_count]);
		err = err ? err : ret;
	}
	if (crowd->cq)
		ibv_destroy_cq(crowd->cq);
	if (crowd->pd)
		ibv_dealloc_pd(crowd->pd);
	free(crowd->qps);
	memset(crowd, 0, sizeof(*crowd));
	return err;
}
