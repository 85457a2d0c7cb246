/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A node: a machine with a set of endpoints, this one or another.
 *
 * A test across machines runs on one of them, the leader; the others serve
 * (node_serve()) until it is done. The leader orders endpoints about by number
 * through the same calls wherever they are, so a test reads the same for local
 * and remote members. Orders travel over TCP; both ends run the same program.
 */
#ifndef GUEST_NODE_H
#define GUEST_NODE_H

#include <stdint.h>

#include "endpoint.h"

#define NODE_ENDPOINTS 32
#define NODE_RECEIVED 2048
#define NODE_PORT 18515

struct node {
	const char *name;
	const struct device *device;	/* local node only */
	int socket;			/* -1 for the local node */
	union ibv_gid gid[2];		/* of IPv4 and IPv6 */
	struct endpoint endpoints[NODE_ENDPOINTS];
};

/* This machine. */
int node_local(struct node *node, const struct device *device);

/* The machine at @address, which may need up to @wait_ms to start serving. */
int node_connect(struct node *node, const char *address, int wait_ms);

/* Obeys one leader; returns 0 once it has said goodbye. */
int node_serve(const struct device *device, int wait_ms);

/* Closes every endpoint; says goodbye to a remote node. */
void node_close(struct node *node);

const union ibv_gid *node_gid(const struct node *node, enum family family);

/* Endpoint @id comes to be; *@qpn is its queue pair's number. */
int node_open(struct node *node, uint32_t id, enum family family, uint32_t qkey,
	      uint32_t depth, uint32_t *qpn);
/* As endpoint_close(): EBUSY if attached. */
int node_shut(struct node *node, uint32_t id);
/* As node_shut(), but first takes back every attachment it still has. */
int node_clear(struct node *node, uint32_t id);
int node_attach(struct node *node, uint32_t id, const union ibv_gid *group,
		uint16_t lid);
int node_detach(struct node *node, uint32_t id, const union ibv_gid *group,
		uint16_t lid);
/*
 * host_join() and host_leave() on the interface that the node's GIDs belong to. A
 * join waits for the switch, see nic_await_group().
 */
int node_host_join(struct node *node, const union ibv_gid *group);
int node_host_leave(struct node *node, const union ibv_gid *group);
/* What the rdma_cm of a node was told when it asked for a datagram service. */
struct answer {
	uint32_t event;		/* enum rdma_cm_event_type */
	int32_t status;
	uint32_t qpn;		/* these two with RDMA_CM_EVENT_ESTABLISHED */
	uint32_t qkey;
};

/*
 * Has the node ask for the datagram service at port @port of @to, and gives back
 * the event in which that ended.
 */
int node_ask(struct node *node, const union ibv_gid *to, uint16_t port,
	     struct answer *answer);
int node_post(struct node *node, uint32_t id, uint32_t count);
int node_fail(struct node *node, uint32_t id);
int node_send(struct node *node, uint32_t id, const struct datagram *datagram,
	      uint32_t count);
/* As endpoint_collect(); the result is good until the next call. */
int node_collect(struct node *node, uint32_t id, uint32_t token, int wait_ms,
		 const struct received **received, uint32_t *count);

#endif
