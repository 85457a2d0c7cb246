// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <arpa/inet.h>

#include "endpoint.h"
#include "payload.h"

#define SEND_DEPTH 16
#define MULTICAST_HOPS 16
#define INLINE_BYTES 64

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static unsigned char *send_buffer(struct endpoint *endpoint)
{
	return endpoint->memory + (size_t)endpoint->depth * endpoint->slot;
}

static int modify(struct endpoint *endpoint, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {
		.qp_state = state,
		.port_num = PORT,
		.qkey = endpoint->qkey,
	};
	int mask = IBV_QP_STATE;

	if (state == IBV_QPS_INIT)
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	if (state == IBV_QPS_RTS)
		mask |= IBV_QP_SQ_PSN;
	return ibv_modify_qp(endpoint->qp, &attr, mask);
}

static int create_queue_pair(struct endpoint *endpoint)
{
	struct ibv_context *context = endpoint->device->context;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_UD,
		.cap = {
			.max_send_wr = SEND_DEPTH,
			.max_recv_wr = endpoint->depth,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = INLINE_BYTES,
		},
	};

	endpoint->send_cq = ibv_create_cq(context, SEND_DEPTH, NULL,
					  endpoint->channel, 0);
	if (!endpoint->send_cq)
		return errno;
	endpoint->recv_cq = ibv_create_cq(context, (int)endpoint->depth, NULL,
					  endpoint->channel, 0);
	if (!endpoint->recv_cq)
		return errno;
	attr.send_cq = endpoint->send_cq;
	attr.recv_cq = endpoint->recv_cq;
	if (endpoint->maker.make)
		return endpoint->maker.make(endpoint, &attr);
	endpoint->qp = ibv_create_qp(endpoint->pd, &attr);
	return endpoint->qp ? 0 : errno;
}

static int allocate(struct endpoint *endpoint)
{
	size_t size = (size_t)(endpoint->depth + 1) * endpoint->slot;
	int flags;

	endpoint->pd = ibv_alloc_pd(endpoint->device->context);
	if (!endpoint->pd)
		return errno;
	endpoint->channel = ibv_create_comp_channel(endpoint->device->context);
	if (!endpoint->channel)
		return errno;
	flags = fcntl(endpoint->channel->fd, F_GETFL);
	if (flags < 0 ||
	    fcntl(endpoint->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return errno;
	endpoint->memory = calloc(1, size);
	if (!endpoint->memory)
		return ENOMEM;
	endpoint->mr = ibv_reg_mr(endpoint->pd, endpoint->memory, size,
				  IBV_ACCESS_LOCAL_WRITE);
	return endpoint->mr ? 0 : errno;
}

static void release(struct endpoint *endpoint)
{
	if (endpoint->ah)
		ibv_destroy_ah(endpoint->ah);
	if (endpoint->recv_cq)
		ibv_destroy_cq(endpoint->recv_cq);
	if (endpoint->send_cq)
		ibv_destroy_cq(endpoint->send_cq);
	if (endpoint->mr)
		ibv_dereg_mr(endpoint->mr);
	free(endpoint->memory);
	free(endpoint->attachments);
	if (endpoint->channel)
		ibv_destroy_comp_channel(endpoint->channel);
	if (endpoint->pd)
		ibv_dealloc_pd(endpoint->pd);
	memset(endpoint, 0, sizeof(*endpoint));
}

static void prepare(struct endpoint *endpoint, const struct device *device,
		    enum family family, uint32_t qkey, uint32_t depth)
{
	memset(endpoint, 0, sizeof(*endpoint));
	endpoint->device = device;
	endpoint->family = family;
	endpoint->qkey = qkey;
	endpoint->depth = depth;
	endpoint->gid_index = -1;
	/* Room for one byte too many, so that it would be seen. */
	endpoint->slot = HEADER_BYTES + device_mtu(device) + 64;
}

static int destroy_queue_pair(struct endpoint *endpoint)
{
	return endpoint->maker.destroy ? endpoint->maker.destroy(endpoint) :
					 ibv_destroy_qp(endpoint->qp);
}

static int bring_up(struct endpoint *endpoint)
{
	int err;

	/* Whoever makes a queue pair has done so. */
	if (endpoint->maker.make)
		return 0;
	err = modify(endpoint, IBV_QPS_INIT);
	if (!err)
		err = modify(endpoint, IBV_QPS_RTR);
	if (!err)
		err = modify(endpoint, IBV_QPS_RTS);
	return err;
}

static int complete(struct endpoint *endpoint, uint32_t depth)
{
	const char *step = "register memory";
	int err;

	err = allocate(endpoint);
	if (err)
		goto fail;
	step = "create queue pair";
	err = create_queue_pair(endpoint);
	if (err)
		goto fail;
	step = "bring queue pair to RTS";
	err = bring_up(endpoint);
	if (err)
		goto fail;
	step = "post receives";
	err = endpoint_post(endpoint, depth);
	if (!err)
		return 0;
fail:
	fprintf(stderr, "open endpoint on %s: %s: %s\n",
		endpoint->device->name, step, strerror(err));
	if (endpoint->qp)
		destroy_queue_pair(endpoint);
	release(endpoint);
	return err;
}

int endpoint_open(struct endpoint *endpoint, const struct device *device,
		  enum family family, uint32_t qkey, uint32_t depth)
{
	int err;

	prepare(endpoint, device, family, qkey, depth);
	err = device_gid(device, family, &endpoint->gid, &endpoint->gid_index);
	return err ? err : complete(endpoint, depth);
}

int endpoint_open_on(struct endpoint *endpoint, const struct device *device,
		     enum family family, const char *netdev, uint32_t qkey,
		     uint32_t depth)
{
	int err = 0;

	prepare(endpoint, device, family, qkey, depth);
	if (netdev)
		err = device_gid_on(device, family, netdev, &endpoint->gid,
				    &endpoint->gid_index);
	return err ? err : complete(endpoint, depth);
}

int endpoint_open_made(struct endpoint *endpoint, const struct device *device,
		       const union ibv_gid *address, uint32_t depth,
		       const struct qp_maker *maker)
{
	int err;

	prepare(endpoint, device, gid_family(address), DEFAULT_QKEY, depth);
	endpoint->maker = *maker;
	endpoint->gid = *address;
	err = device_gid_index(device, address, &endpoint->gid_index);
	return err ? err : complete(endpoint, depth);
}

int endpoint_close(struct endpoint *endpoint)
{
	int err;

	if (!endpoint->qp)
		return 0;
	err = destroy_queue_pair(endpoint);
	if (err)
		return err;
	endpoint->qp = NULL;
	release(endpoint);
	return 0;
}

static struct attachment *find(struct endpoint *endpoint,
			       const union ibv_gid *group, uint16_t lid)
{
	size_t i;

	for (i = 0; i < endpoint->attached; i++) {
		struct attachment *at = &endpoint->attachments[i];

		if (at->lid == lid && !memcmp(&at->group, group, sizeof(*group)))
			return at;
	}
	return NULL;
}

int endpoint_attach(struct endpoint *endpoint, const union ibv_gid *group,
		    uint16_t lid)
{
	struct attachment *grown;
	int err = ibv_attach_mcast(endpoint->qp, group, lid);

	/* The kernel, too, holds a repeated attachment once. */
	if (err || find(endpoint, group, lid))
		return err;
	grown = reallocarray(endpoint->attachments, endpoint->attached + 1,
			     sizeof(*grown));
	if (!grown)
		return 0;
	grown[endpoint->attached].group = *group;
	grown[endpoint->attached].lid = lid;
	endpoint->attachments = grown;
	endpoint->attached++;
	return 0;
}

int endpoint_detach(struct endpoint *endpoint, const union ibv_gid *group,
		    uint16_t lid)
{
	struct attachment *at = find(endpoint, group, lid);

	/* Whatever the answer, the kernel forgets the attachment. */
	if (at)
		*at = endpoint->attachments[--endpoint->attached];
	return ibv_detach_mcast(endpoint->qp, group, lid);
}

void endpoint_detach_all(struct endpoint *endpoint)
{
	while (endpoint->attached) {
		struct attachment last =
			endpoint->attachments[endpoint->attached - 1];

		endpoint_detach(endpoint, &last.group, last.lid);
	}
}

int endpoint_fail(struct endpoint *endpoint)
{
	return modify(endpoint, IBV_QPS_ERR);
}

static int post_slot(struct endpoint *endpoint, uint64_t slot)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)(endpoint->memory + slot * endpoint->slot),
		.length = endpoint->slot,
		.lkey = endpoint->mr->lkey,
	};
	struct ibv_recv_wr wr = {
		.wr_id = slot,
		.sg_list = &sge,
		.num_sge = 1,
	};
	struct ibv_recv_wr *bad;

	return ibv_post_recv(endpoint->qp, &wr, &bad);
}

int endpoint_post(struct endpoint *endpoint, uint32_t count)
{
	uint32_t slot;
	int err = 0;

	for (slot = 0; slot < count && !err; slot++)
		err = post_slot(endpoint, slot);
	return err;
}

/* Takes one event off the channel if there is one, or waits for it. */
static int wait_event(struct endpoint *endpoint, int64_t deadline)
{
	struct pollfd wait = {
		.fd = endpoint->channel->fd,
		.events = POLLIN,
	};
	int64_t left = deadline - now_ms();
	struct ibv_cq *cq;
	void *context;
	int ready;

	ready = poll(&wait, 1, left > 0 ? (int)left : 0);
	if (ready < 0)
		return errno == EINTR ? 0 : errno;
	if (!ready)
		return ETIMEDOUT;
	if (ibv_get_cq_event(endpoint->channel, &cq, &context))
		return errno == EAGAIN ? 0 : errno;
	ibv_ack_cq_events(cq, 1);
	return 0;
}

/* One completion from @cq, waiting for it until @deadline. */
static int next_completion(struct endpoint *endpoint, struct ibv_cq *cq,
			   int64_t deadline, struct ibv_wc *wc)
{
	for (;;) {
		int err, found = ibv_poll_cq(cq, 1, wc);

		if (!found) {
			/* Arm, then look again: it may have come in between. */
			err = ibv_req_notify_cq(cq, 0);
			if (err)
				return err;
			found = ibv_poll_cq(cq, 1, wc);
		}
		if (found < 0)
			return EIO;
		if (found)
			return 0;
		err = wait_event(endpoint, deadline);
		if (err == ETIMEDOUT && ibv_poll_cq(cq, 1, wc) > 0)
			fprintf(stderr, "wait on QP %u: completion without its event\n",
				endpoint->qp->qp_num);
		if (err)
			return err;
	}
}

int endpoint_address(struct endpoint *endpoint, const union ibv_gid *to)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = PORT,
		.grh = {
			.dgid = *to,
			.sgid_index = (uint8_t)endpoint->gid_index,
			.hop_limit = MULTICAST_HOPS,
		},
	};

	if (endpoint->gid_index < 0)
		return EADDRNOTAVAIL;
	if (endpoint->ah &&
	    !memcmp(&endpoint->ah_gid, to, sizeof(endpoint->ah_gid)))
		return 0;
	if (endpoint->ah)
		ibv_destroy_ah(endpoint->ah);
	endpoint->ah = ibv_create_ah(endpoint->pd, &attr);
	if (!endpoint->ah)
		return errno ? errno : EIO;
	endpoint->ah_gid = *to;
	return 0;
}

static int send_one(struct endpoint *endpoint, const struct datagram *datagram,
		    uint32_t token)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)send_buffer(endpoint),
		.length = datagram->length,
		.lkey = endpoint->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = datagram->length ? 1 : 0,
		.opcode = datagram->has_immediate ? IBV_WR_SEND_WITH_IMM :
						    IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED |
			      (datagram->solicited ? IBV_SEND_SOLICITED : 0) |
			      (datagram->inlined ? IBV_SEND_INLINE : 0),
		.imm_data = htonl(datagram->immediate),
		.wr.ud = {
			.ah = endpoint->ah,
			.remote_qpn = datagram->qpn,
			.remote_qkey = datagram->qkey,
		},
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int err;

	if (datagram->length > endpoint->slot)
		return EMSGSIZE;
	payload_write(send_buffer(endpoint), datagram, token);
	err = ibv_post_send(endpoint->qp, &wr, &bad);
	if (err)
		return err;
	err = next_completion(endpoint, endpoint->send_cq, now_ms() + WAIT_MS,
			      &wc);
	if (err)
		return err;
	return wc.status == IBV_WC_SUCCESS ? 0 : EIO;
}

int endpoint_send(struct endpoint *endpoint, const struct datagram *datagram,
		  uint32_t count)
{
	uint32_t i;
	int err = endpoint_address(endpoint, &datagram->to);

	for (i = 0; i < count && !err; i++)
		err = send_one(endpoint, datagram, datagram->token + i);
	return err;
}

static void read_completion(struct endpoint *endpoint, const struct ibv_wc *wc,
			    struct received *received)
{
	const unsigned char *buffer =
		endpoint->memory + wc->wr_id * endpoint->slot;

	memset(received, 0, sizeof(*received));
	received->grh = wc->wc_flags & IBV_WC_GRH;
	received->source_qpn = wc->src_qp;
	received->has_immediate = wc->wc_flags & IBV_WC_WITH_IMM;
	if (received->has_immediate)
		received->immediate = ntohl(wc->imm_data);
	/* A length below the header's cannot be: it fails every comparison. */
	received->length = wc->byte_len - HEADER_BYTES;
	if (wc->byte_len < HEADER_BYTES || wc->byte_len > endpoint->slot)
		return;
	header_read(&received->header, buffer, endpoint->family,
		    received->length, received->has_immediate);
	payload_read(buffer + HEADER_BYTES, received);
}

static int gather(struct endpoint *endpoint, const uint32_t *marker,
		  int wait_ms, struct received *received, uint32_t capacity,
		  uint32_t *count)
{
	int64_t deadline = now_ms() + wait_ms;

	*count = 0;
	while (marker || *count < capacity) {
		struct received one;
		struct ibv_wc wc;
		int err;

		err = next_completion(endpoint, endpoint->recv_cq, deadline,
				      &wc);
		if (err)
			return err;
		if (wc.status != IBV_WC_SUCCESS ||
		    wc.wr_id >= endpoint->depth)
			return EIO;
		read_completion(endpoint, &wc, &one);
		err = post_slot(endpoint, wc.wr_id);
		if (err)
			return err;
		if (marker && one.marker && one.token == *marker)
			return 0;
		if (*count == capacity)
			return ENOBUFS;
		received[(*count)++] = one;
	}
	return 0;
}

int endpoint_collect(struct endpoint *endpoint, uint32_t token, int wait_ms,
		     struct received *received, uint32_t capacity,
		     uint32_t *count)
{
	return gather(endpoint, &token, wait_ms, received, capacity, count);
}

int endpoint_receive(struct endpoint *endpoint, int wait_ms,
		     struct received *received, uint32_t want, uint32_t *count)
{
	return gather(endpoint, NULL, wait_ms, received, want, count);
}
