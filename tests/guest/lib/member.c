// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "member.h"

#define RESOLVE_MS 2000

void gid_address(const union ibv_gid *gid, uint16_t port,
		 struct sockaddr_storage *address)
{
	struct sockaddr_in *ip = (struct sockaddr_in *)address;
	struct sockaddr_in6 *ip6 = (struct sockaddr_in6 *)address;

	memset(address, 0, sizeof(*address));
	if (gid_family(gid) == IPV4) {
		ip->sin_family = AF_INET;
		ip->sin_port = htons(port);
		memcpy(&ip->sin_addr, &gid->raw[12], 4);
	} else {
		ip6->sin6_family = AF_INET6;
		ip6->sin6_port = htons(port);
		memcpy(&ip6->sin6_addr, gid->raw, 16);
	}
}

int member_open(struct member *member, enum rdma_port_space space)
{
	int err;

	memset(member, 0, sizeof(*member));
	member->channel = rdma_create_event_channel();
	if (!member->channel)
		return errno;
	if (!rdma_create_id(member->channel, &member->id, member, space))
		return 0;
	err = errno;
	rdma_destroy_event_channel(member->channel);
	member->channel = NULL;
	member->id = NULL;
	return err;
}

/* Learns of the device that the identifier is bound to by now. */
static int learn(struct member *member)
{
	struct sockaddr *address = rdma_get_local_addr(member->id);
	int index, err;

	if (address->sa_family == AF_INET) {
		gid_parse("0.0.0.0", &member->address);
		memcpy(&member->address.raw[12],
		       &((struct sockaddr_in *)address)->sin_addr, 4);
	} else {
		memcpy(member->address.raw,
		       &((struct sockaddr_in6 *)address)->sin6_addr, 16);
	}
	if (!member->id->verbs)
		return ENODEV;
	err = device_adopt(&member->device, member->id->verbs);
	if (!err)
		err = device_gid_index(&member->device, &member->address,
				       &index);
	if (!err)
		member->ifindex = device_ifindex(&member->device, index);
	return err;
}

int member_bind(struct member *member, const union ibv_gid *address)
{
	struct sockaddr_storage at;

	gid_address(address, 0, &at);
	if (rdma_bind_addr(member->id, (struct sockaddr *)&at))
		return errno;
	return learn(member);
}

int member_ask_address(struct member *member, const union ibv_gid *from,
		       const union ibv_gid *to, uint16_t port,
		       struct member_event *event)
{
	struct sockaddr_storage source, target;

	gid_address(to, port, &target);
	if (from)
		gid_address(from, 0, &source);
	if (rdma_resolve_addr(member->id,
			      from ? (struct sockaddr *)&source : NULL,
			      (struct sockaddr *)&target, RESOLVE_MS))
		return errno;
	return member_event(member, event);
}

int member_resolve(struct member *member, const union ibv_gid *from,
		   const union ibv_gid *to)
{
	struct member_event event;
	int err = member_ask_address(member, from, to, 0, &event);

	if (err)
		return err;
	if (event.type != RDMA_CM_EVENT_ADDR_RESOLVED)
		return event.status < 0 ? -event.status : EPROTO;
	return learn(member);
}

int member_ask_service(struct member *member, struct member_event *event)
{
	struct rdma_conn_param parameters = { .qp_num = 0 };
	int err;

	if (rdma_resolve_route(member->id, RESOLVE_MS))
		return errno;
	err = member_event(member, event);
	if (err || event->type != RDMA_CM_EVENT_ROUTE_RESOLVED)
		return err;
	if (rdma_connect(member->id, &parameters))
		return errno;
	return member_event(member, event);
}

int member_close(struct member *member)
{
	int err = 0;

	if (member->id) {
		member_leave_all(member);
		if (rdma_destroy_id(member->id))
			err = errno;
		rdma_destroy_event_channel(member->channel);
	}
	free(member->joined);
	memset(member, 0, sizeof(*member));
	return err;
}

static int make(struct endpoint *endpoint, struct ibv_qp_init_attr *attr)
{
	struct member *member = endpoint->maker.context;

	if (rdma_create_qp(member->id, endpoint->pd, attr))
		return errno;
	endpoint->qp = member->id->qp;
	return 0;
}

/* As rdma_destroy_qp(), which keeps the result to itself. */
static int destroy(struct endpoint *endpoint)
{
	struct member *member = endpoint->maker.context;
	int err = ibv_destroy_qp(endpoint->qp);

	if (!err && member->id)
		member->id->qp = NULL;
	return err;
}

int member_endpoint(struct member *member, struct endpoint *endpoint,
		    uint32_t depth)
{
	const struct qp_maker maker = {
		.make = make,
		.destroy = destroy,
		.context = member,
	};

	return endpoint_open_made(endpoint, &member->device, &member->address,
				  depth, &maker);
}

/* Keeps in mind that @group is to be left. */
static int remember(struct member *member, const union ibv_gid *group)
{
	union ibv_gid *grown = reallocarray(member->joined, member->joins + 1,
					    sizeof(*grown));

	if (!grown)
		return ENOMEM;
	grown[member->joins++] = *group;
	member->joined = grown;
	return 0;
}

int member_join(struct member *member, const union ibv_gid *group,
		void *context)
{
	struct sockaddr_storage address;

	gid_address(group, 0, &address);
	if (rdma_join_multicast(member->id, (struct sockaddr *)&address,
				context))
		return errno;
	return remember(member, group);
}

int member_join_as(struct member *member, const union ibv_gid *group,
		   enum rdma_cm_mc_join_flags flags, void *context)
{
	struct sockaddr_storage address;
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
			     RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = flags,
		.addr = (struct sockaddr *)&address,
	};

	gid_address(group, 0, &address);
	if (rdma_join_multicast_ex(member->id, &attr, context))
		return errno;
	return remember(member, group);
}

int member_leave(struct member *member, const union ibv_gid *group)
{
	struct sockaddr_storage address;
	unsigned int i;

	for (i = 0; i < member->joins; i++) {
		if (memcmp(&member->joined[i], group, sizeof(*group)))
			continue;
		member->joined[i] = member->joined[--member->joins];
		break;
	}
	gid_address(group, 0, &address);
	return rdma_leave_multicast(member->id, (struct sockaddr *)&address) ?
		       errno : 0;
}

void member_leave_all(struct member *member)
{
	while (member->joins) {
		union ibv_gid last = member->joined[member->joins - 1];

		member_leave(member, &last);
	}
}

bool member_pending(const struct member *member, int wait_ms)
{
	struct pollfd wait = {
		.fd = member->channel->fd,
		.events = POLLIN,
	};

	return poll(&wait, 1, wait_ms) == 1;
}

int member_event(struct member *member, struct member_event *out)
{
	struct rdma_cm_event *event;

	memset(out, 0, sizeof(*out));
	if (!member_pending(member, WAIT_MS))
		return ETIMEDOUT;
	if (rdma_get_cm_event(member->channel, &event))
		return errno;
	out->type = event->event;
	out->status = event->status;
	if (event->event == RDMA_CM_EVENT_MULTICAST_JOIN ||
	    event->event == RDMA_CM_EVENT_MULTICAST_ERROR)
		out->context = (void *)event->param.ud.private_data;
	out->address = event->param.ud.ah_attr;
	out->qpn = event->param.ud.qp_num;
	out->qkey = event->param.ud.qkey;
	return rdma_ack_cm_event(event) ? errno : 0;
}
