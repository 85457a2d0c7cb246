/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A UD queue pair with everything it needs to send and receive datagrams.
 *
 * Waiting is on completion events and bounded. "Nothing more arrived" is never
 * judged by waiting a while: the sender follows what it sent with a marker, a
 * unicast datagram on the same queue pair, and the receiver gathers everything
 * up to that marker. Datagrams of one queue pair stay in order on their way, so
 * what is not there when the marker is will not come.
 */
#ifndef GUEST_ENDPOINT_H
#define GUEST_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#include "device.h"
#include "header.h"

#define MULTICAST_QPN 0xffffff
#define DEFAULT_QKEY 0x01234567
#define DEFAULT_DEPTH 32
#define WAIT_MS 10000

/* One attachment that the kernel confirmed. */
struct attachment {
	union ibv_gid group;
	uint16_t lid;
};

struct endpoint;

/*
 * Who makes an endpoint's queue pair, if it does not itself: @make creates it with
 * @attr in @endpoint->pd, sets @endpoint->qp and brings it to RTS; @destroy takes it
 * back. Both return 0 or an errno.
 */
struct qp_maker {
	int (*make)(struct endpoint *endpoint, struct ibv_qp_init_attr *attr);
	int (*destroy)(struct endpoint *endpoint);
	void *context;
};

struct endpoint {
	const struct device *device;
	enum family family;
	uint32_t qkey;
	uint32_t depth;
	uint32_t slot;		/* bytes of one receive buffer */
	union ibv_gid gid;
	int gid_index;		/* negative: has no address */

	struct qp_maker maker;	/* @make is NULL if nobody else does */

	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *send_cq;
	struct ibv_cq *recv_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	unsigned char *memory;	/* @depth receive slots, then one to send from */

	struct ibv_ah *ah;	/* the last one used, to @ah_gid */
	union ibv_gid ah_gid;

	struct attachment *attachments;
	size_t attached;
};

/* What to send. */
struct datagram {
	union ibv_gid to;
	uint32_t qpn;
	uint32_t qkey;
	uint32_t length;	/* payload bytes */
	uint32_t token;		/* names the datagram; payload derives from it */
	uint32_t immediate;
	bool has_immediate;
	bool solicited;
	bool marker;
	bool inlined;
};

/* What came in. */
struct received {
	struct header header;
	uint32_t length;
	uint32_t token;		/* payload too short for it: the first byte */
	uint32_t source_qpn;
	uint32_t immediate;
	bool has_immediate;
	bool marker;
	bool grh;		/* the completion says that a header is there */
	bool intact;		/* every payload byte is what the sender wrote */
};

/* Shortest payload that carries its token. */
#define TOKEN_BYTES 12

/*
 * All return 0 or an errno. Opening reports its failure on stderr: everything
 * else is for the caller to judge.
 */
int endpoint_open(struct endpoint *endpoint, const struct device *device,
		  enum family family, uint32_t qkey, uint32_t depth);
/*
 * As endpoint_open(), with the address it sends from on interface @netdev; with
 * NULL it needs no address and can only receive.
 */
int endpoint_open_on(struct endpoint *endpoint, const struct device *device,
		     enum family family, const char *netdev, uint32_t qkey,
		     uint32_t depth);
/* As endpoint_open(), with address @address and somebody else's queue pair. */
int endpoint_open_made(struct endpoint *endpoint, const struct device *device,
		       const union ibv_gid *address, uint32_t depth,
		       const struct qp_maker *maker);
/* Returns what destroying the queue pair returned; on error all stays usable. */
int endpoint_close(struct endpoint *endpoint);
int endpoint_attach(struct endpoint *endpoint, const union ibv_gid *group,
		    uint16_t lid);
int endpoint_detach(struct endpoint *endpoint, const union ibv_gid *group,
		    uint16_t lid);
/* Takes back every attachment not detached yet. */
void endpoint_detach_all(struct endpoint *endpoint);
int endpoint_post(struct endpoint *endpoint, uint32_t count);
int endpoint_fail(struct endpoint *endpoint);
/* Has an address handle to @to made, for the next send. */
int endpoint_address(struct endpoint *endpoint, const union ibv_gid *to);

/*
 * Sends @datagram @count times, the token one higher each time, and waits for
 * the completions. A failed completion is EIO.
 */
int endpoint_send(struct endpoint *endpoint, const struct datagram *datagram,
		  uint32_t count);

/*
 * Gathers what arrives up to the marker @token, which is not stored, and gives
 * back each receive buffer used. ETIMEDOUT if the marker does not come, ENOBUFS
 * if more than @capacity datagrams come, EIO if a completion is an error.
 */
int endpoint_collect(struct endpoint *endpoint, uint32_t token, int wait_ms,
		     struct received *received, uint32_t capacity,
		     uint32_t *count);

/* As endpoint_collect(), but stops at the first @want datagrams. */
int endpoint_receive(struct endpoint *endpoint, int wait_ms,
		     struct received *received, uint32_t want,
		     uint32_t *count);

#endif
