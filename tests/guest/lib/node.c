// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "host.h"
#include "member.h"
#include "nic.h"
#include "node.h"

enum order {
	ORDER_OPEN = 1,
	ORDER_SHUT,
	ORDER_CLEAR,
	ORDER_ATTACH,
	ORDER_DETACH,
	ORDER_POST,
	ORDER_FAIL,
	ORDER_SEND,
	ORDER_COLLECT,
	ORDER_HOST_JOIN,
	ORDER_HOST_LEAVE,
	ORDER_ASK,
	ORDER_GOODBYE,
};

/* The two ends are one program: the structures travel as they are. */
struct request {
	uint32_t order;
	uint32_t id;
	uint32_t family;
	uint32_t qkey;
	uint32_t count;
	uint32_t wait_ms;
	uint32_t token;
	uint32_t lid;
	uint32_t port;
	union ibv_gid group;	/* or another address */
	struct datagram datagram;
};

struct reply {
	int32_t err;
	uint32_t qpn;
	uint32_t count;		/* of struct received that follow */
	struct answer answer;
};

struct greeting {
	uint32_t request_bytes;
	uint32_t received_bytes;
	union ibv_gid gid[2];
};

static struct received gathered[NODE_RECEIVED];

static int gid_slot(enum family family)
{
	return family == IPV6;
}

const union ibv_gid *node_gid(const struct node *node, enum family family)
{
	return &node->gid[gid_slot(family)];
}

static int transfer(int socket, void *data, size_t length, bool out)
{
	char *at = data;

	while (length) {
		ssize_t done = out ? send(socket, at, length, MSG_NOSIGNAL) :
				     recv(socket, at, length, 0);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return errno;
		if (!done)
			return ECONNRESET;
		at += done;
		length -= (size_t)done;
	}
	return 0;
}

static int execute_host(const struct node *node, const struct request *request)
{
	union ibv_gid gid;
	int index, err;
	unsigned int ifindex;

	err = device_gid(node->device, gid_family(&request->group), &gid,
			 &index);
	if (err)
		return err;
	ifindex = device_ifindex(node->device, index);
	if (request->order == ORDER_HOST_LEAVE)
		return host_leave(&request->group, ifindex);
	err = host_join(&request->group, ifindex);
	return err ? err : nic_await_group(&request->group, true);
}

static int execute_ask(const struct node *node, const struct request *request,
		       struct answer *answer)
{
	const union ibv_gid *from = node_gid(node, gid_family(&request->group));
	struct member_event event;
	struct member member;
	int err, closed;

	err = member_open(&member, RDMA_PS_UDP);
	if (err)
		return err;
	err = member_ask_address(&member, from, &request->group,
				 (uint16_t)request->port, &event);
	if (!err && event.type == RDMA_CM_EVENT_ADDR_RESOLVED)
		err = member_ask_service(&member, &event);
	*answer = (struct answer){
		.event = event.type,
		.status = event.status,
		.qpn = event.qpn,
		.qkey = event.qkey,
	};
	closed = member_close(&member);
	return err ? err : closed;
}

static int execute(struct node *node, const struct request *request,
		   struct reply *reply)
{
	struct endpoint *endpoint;

	if (request->order == ORDER_HOST_JOIN ||
	    request->order == ORDER_HOST_LEAVE)
		return execute_host(node, request);
	if (request->order == ORDER_ASK)
		return execute_ask(node, request, &reply->answer);
	if (request->id >= NODE_ENDPOINTS)
		return ENOENT;
	endpoint = &node->endpoints[request->id];
	if (request->order != ORDER_OPEN && !endpoint->qp)
		return ENOENT;

	switch (request->order) {
	case ORDER_OPEN: {
		int err;

		if (endpoint->qp)
			return EEXIST;
		err = endpoint_open(endpoint, node->device, request->family,
				    request->qkey, request->count);
		reply->qpn = err ? 0 : endpoint->qp->qp_num;
		return err;
	}
	case ORDER_SHUT:
		return endpoint_close(endpoint);
	case ORDER_CLEAR:
		endpoint_detach_all(endpoint);
		return endpoint_close(endpoint);
	case ORDER_ATTACH:
		return endpoint_attach(endpoint, &request->group,
				       (uint16_t)request->lid);
	case ORDER_DETACH:
		return endpoint_detach(endpoint, &request->group,
				       (uint16_t)request->lid);
	case ORDER_POST:
		return endpoint_post(endpoint, request->count);
	case ORDER_FAIL:
		return endpoint_fail(endpoint);
	case ORDER_SEND:
		return endpoint_send(endpoint, &request->datagram,
				     request->count);
	case ORDER_COLLECT:
		return endpoint_collect(endpoint, request->token,
					(int)request->wait_ms, gathered,
					NODE_RECEIVED, &reply->count);
	default:
		return EPROTO;
	}
}

/* Carries out @request here or there; its own errno, or the connection's. */
static int perform(struct node *node, struct request *request,
		   struct reply *reply)
{
	int err;

	memset(reply, 0, sizeof(*reply));
	if (node->socket < 0)
		return execute(node, request, reply);

	err = transfer(node->socket, request, sizeof(*request), true);
	if (!err)
		err = transfer(node->socket, reply, sizeof(*reply), false);
	if (!err && reply->count > NODE_RECEIVED)
		err = EPROTO;
	if (!err)
		err = transfer(node->socket, gathered,
			       reply->count * sizeof(gathered[0]), false);
	if (err) {
		fprintf(stderr, "order to node %s: %s\n", node->name,
			strerror(err));
		return err;
	}
	return reply->err;
}

static int simple(struct node *node, enum order order, uint32_t id,
		  uint32_t count)
{
	struct request request = {
		.order = order,
		.id = id,
		.count = count,
	};
	struct reply reply;

	return perform(node, &request, &reply);
}

static int membership(struct node *node, enum order order, uint32_t id,
		      const union ibv_gid *group, uint16_t lid)
{
	struct request request = {
		.order = order,
		.id = id,
		.lid = lid,
		.group = *group,
	};
	struct reply reply;

	return perform(node, &request, &reply);
}

int node_open(struct node *node, uint32_t id, enum family family, uint32_t qkey,
	      uint32_t depth, uint32_t *qpn)
{
	struct request request = {
		.order = ORDER_OPEN,
		.id = id,
		.family = family,
		.qkey = qkey,
		.count = depth,
	};
	struct reply reply;
	int err = perform(node, &request, &reply);

	*qpn = reply.qpn;
	return err;
}

int node_shut(struct node *node, uint32_t id)
{
	return simple(node, ORDER_SHUT, id, 0);
}

int node_clear(struct node *node, uint32_t id)
{
	return simple(node, ORDER_CLEAR, id, 0);
}

int node_attach(struct node *node, uint32_t id, const union ibv_gid *group,
		uint16_t lid)
{
	return membership(node, ORDER_ATTACH, id, group, lid);
}

int node_detach(struct node *node, uint32_t id, const union ibv_gid *group,
		uint16_t lid)
{
	return membership(node, ORDER_DETACH, id, group, lid);
}

int node_host_join(struct node *node, const union ibv_gid *group)
{
	return membership(node, ORDER_HOST_JOIN, 0, group, 0);
}

int node_host_leave(struct node *node, const union ibv_gid *group)
{
	return membership(node, ORDER_HOST_LEAVE, 0, group, 0);
}

int node_ask(struct node *node, const union ibv_gid *to, uint16_t port,
	     struct answer *answer)
{
	struct request request = {
		.order = ORDER_ASK,
		.port = port,
		.group = *to,
	};
	struct reply reply;
	int err = perform(node, &request, &reply);

	*answer = reply.answer;
	return err;
}

int node_post(struct node *node, uint32_t id, uint32_t count)
{
	return simple(node, ORDER_POST, id, count);
}

int node_fail(struct node *node, uint32_t id)
{
	return simple(node, ORDER_FAIL, id, 0);
}

int node_send(struct node *node, uint32_t id, const struct datagram *datagram,
	      uint32_t count)
{
	struct request request = {
		.order = ORDER_SEND,
		.id = id,
		.count = count,
		.datagram = *datagram,
	};
	struct reply reply;

	return perform(node, &request, &reply);
}

int node_collect(struct node *node, uint32_t id, uint32_t token, int wait_ms,
		 const struct received **received, uint32_t *count)
{
	struct request request = {
		.order = ORDER_COLLECT,
		.id = id,
		.token = token,
		.wait_ms = (uint32_t)wait_ms,
	};
	struct reply reply;
	int err = perform(node, &request, &reply);

	*received = gathered;
	*count = reply.count;
	return err;
}

int node_local(struct node *node, const struct device *device)
{
	enum family family[] = { IPV4, IPV6 };
	size_t i;

	memset(node, 0, sizeof(*node));
	node->name = "here";
	node->device = device;
	node->socket = -1;
	for (i = 0; i < sizeof(family) / sizeof(family[0]); i++) {
		int index, err;

		err = device_gid(device, family[i],
				 &node->gid[gid_slot(family[i])], &index);
		if (err)
			return err;
	}
	return 0;
}

static void pause_ms(int ms)
{
	poll(NULL, 0, ms);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/*
 * One attempt to connect, bounded even when the far end's machine is not there
 * to refuse it.
 */
static int try_connect(const struct sockaddr_in *to, int *out)
{
	struct timeval bound = { .tv_sec = 2 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1, err;

	if (fd < 0)
		return errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof(bound));
	if (!connect(fd, (const struct sockaddr *)to, sizeof(*to))) {
		*out = fd;
		return 0;
	}
	err = errno;
	close(fd);
	return err;
}

int node_connect(struct node *node, const char *address, int wait_ms)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(NODE_PORT),
	};
	int64_t deadline = now_ms() + wait_ms;
	struct timeval bound = { .tv_sec = 60 };
	struct greeting greeting;
	int err;

	memset(node, 0, sizeof(*node));
	node->name = address;
	node->socket = -1;
	if (inet_pton(AF_INET, address, &to.sin_addr) != 1) {
		fprintf(stderr, "connect to node %s: not an IPv4 address\n",
			address);
		return EINVAL;
	}
	/* Until it serves, its machine refuses or has not come up yet. */
	do {
		err = try_connect(&to, &node->socket);
		if (err)
			pause_ms(100);
	} while (err && now_ms() < deadline);
	if (!err) {
		/* An order that takes longer than this has hung. */
		setsockopt(node->socket, SOL_SOCKET, SO_RCVTIMEO, &bound,
			   sizeof(bound));
		err = transfer(node->socket, &greeting, sizeof(greeting), false);
	}
	if (!err && (greeting.request_bytes != sizeof(struct request) ||
		     greeting.received_bytes != sizeof(struct received)))
		err = EPROTO;
	if (err) {
		fprintf(stderr, "connect to node %s: %s\n", address,
			strerror(err));
		return err;
	}
	memcpy(node->gid, greeting.gid, sizeof(node->gid));
	return 0;
}

static int accept_leader(int wait_ms, int *out)
{
	struct sockaddr_in any = {
		.sin_family = AF_INET,
		.sin_port = htons(NODE_PORT),
	};
	struct pollfd wait = { .events = POLLIN };
	int one = 1, err = 0;

	wait.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (wait.fd < 0)
		return errno;
	setsockopt(wait.fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(wait.fd, (struct sockaddr *)&any, sizeof(any)) ||
	    listen(wait.fd, 1)) {
		err = errno;
	} else if (poll(&wait, 1, wait_ms) != 1) {
		err = ETIMEDOUT;
	} else {
		*out = accept4(wait.fd, NULL, NULL, SOCK_CLOEXEC);
		if (*out < 0)
			err = errno;
		else
			setsockopt(*out, IPPROTO_TCP, TCP_NODELAY, &one,
				   sizeof(one));
	}
	close(wait.fd);
	return err;
}

static void close_endpoints(struct node *node)
{
	uint32_t id;

	for (id = 0; id < NODE_ENDPOINTS; id++) {
		endpoint_detach_all(&node->endpoints[id]);
		endpoint_close(&node->endpoints[id]);
	}
	host_leave_all();
}

int node_serve(const struct device *device, int wait_ms)
{
	static struct node node;
	struct greeting greeting = {
		.request_bytes = sizeof(struct request),
		.received_bytes = sizeof(struct received),
	};
	int leader = -1, err;

	err = node_local(&node, device);
	if (err)
		return err;
	err = accept_leader(wait_ms, &leader);
	if (err) {
		fprintf(stderr, "wait for leader on port %d: %s\n", NODE_PORT,
			strerror(err));
		return err;
	}
	memcpy(greeting.gid, node.gid, sizeof(node.gid));
	err = transfer(leader, &greeting, sizeof(greeting), true);

	while (!err) {
		struct request request;
		struct reply reply = { 0 };

		err = transfer(leader, &request, sizeof(request), false);
		if (err || request.order == ORDER_GOODBYE)
			break;
		reply.err = execute(&node, &request, &reply);
		err = transfer(leader, &reply, sizeof(reply), true);
		if (!err)
			err = transfer(leader, gathered,
				       reply.count * sizeof(gathered[0]), true);
	}
	if (err)
		fprintf(stderr, "serve leader: %s\n", strerror(err));
	close_endpoints(&node);
	close(leader);
	return err;
}

void node_close(struct node *node)
{
	struct request goodbye = {
		.order = ORDER_GOODBYE,
	};

	if (node->device)
		close_endpoints(node);
	if (node->socket >= 0) {
		transfer(node->socket, &goodbye, sizeof(goodbye), true);
		close(node->socket);
		node->socket = -1;
	}
}
