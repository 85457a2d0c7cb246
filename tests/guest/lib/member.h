/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An rdma_cm identifier with an event channel of its own, and the groups it joins.
 *
 * All functions return 0 or an errno. Waiting for events is bounded by WAIT_MS.
 */
#ifndef GUEST_MEMBER_H
#define GUEST_MEMBER_H

#include <stdbool.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>

#include "endpoint.h"

/* An event, taken over from librdmacm and acknowledged. */
struct member_event {
	enum rdma_cm_event_type type;
	int status;
	void *context;			/* of joins */
	struct ibv_ah_attr address;	/* these three of joins and services */
	uint32_t qpn;
	uint32_t qkey;
};

struct member {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct device device;		/* as librdmacm opened it, once bound */
	union ibv_gid address;		/* that it is bound to */
	unsigned int ifindex;
	union ibv_gid *joined;		/* groups asked for and not left */
	unsigned int joins;
};

/* The IP address of a GID, with port @port in host byte order. */
void gid_address(const union ibv_gid *gid, uint16_t port,
		 struct sockaddr_storage *address);

int member_open(struct member *member, enum rdma_port_space space);
/* Binds it to a local address. */
int member_bind(struct member *member, const union ibv_gid *address);
/* Has it resolve @to, from local address @from or, if that is NULL, from any. */
int member_resolve(struct member *member, const union ibv_gid *from,
		   const union ibv_gid *to);
/* The same for port @port of @to; what came of it is in @event. */
int member_ask_address(struct member *member, const union ibv_gid *from,
		       const union ibv_gid *to, uint16_t port,
		       struct member_event *event);
/* Asks for the datagram service it has resolved; the answer is in @event. */
int member_ask_service(struct member *member, struct member_event *event);
/* Leaves all groups and destroys the identifier; its queue pair must be gone. */
int member_close(struct member *member);

/* Gives it a queue pair, with all that @endpoint needs. */
int member_endpoint(struct member *member, struct endpoint *endpoint,
		    uint32_t depth);

/*
 * Asks to join @group: member_join() with rdma_join_multicast(), the other with
 * rdma_join_multicast_ex() and @flags.
 */
int member_join(struct member *member, const union ibv_gid *group,
		void *context);
int member_join_as(struct member *member, const union ibv_gid *group,
		   enum rdma_cm_mc_join_flags flags, void *context);
int member_leave(struct member *member, const union ibv_gid *group);
void member_leave_all(struct member *member);

/* Whether an event comes within @wait_ms; it is not taken. */
bool member_pending(const struct member *member, int wait_ms);
int member_event(struct member *member, struct member_event *event);

#endif
