// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "cases.h"

/* Status of a SIDR reply, as the InfiniBand specification numbers them. */
enum sidr {
	SIDR_NOT_SUPPORTED = 1,
	SIDR_REJECTED = 2,
};

/* Who asks: another node if there is one. */
static struct node *asker(struct check *check)
{
	return &check->bench.nodes[check->bench.node_count - 1];
}

/* Has the other node ask @member for its service; it has to be told @event and @status. */
static enum verdict ask(struct check *check, const struct member *member,
			enum rdma_cm_event_type event, int status,
			struct answer *answer)
{
	uint16_t port = ntohs(rdma_get_src_port(member->id));
	int err = node_ask(asker(check), &member->address, port, answer);

	if (err)
		return ktap_fail("request to port %u of %s: %s",
				 port, gid_text(&member->address),
				 strerror(err));
	if (answer->event != event || answer->status != status)
		return ktap_fail("the service gives event %s, status %d",
				 rdma_event_str(answer->event),
				 answer->status);
	return PASS;
}

/* A port that is bound and not listened to: nobody else can offer a service there. */
enum verdict case_no_service(void *context, int arg)
{
	struct check *check = context;
	struct answer answer;
	struct member *member;
	enum verdict verdict = step_bound(check, arg, &member);

	return verdict == PASS ?
		       ask(check, member, RDMA_CM_EVENT_UNREACHABLE,
			   SIDR_NOT_SUPPORTED, &answer) :
		       verdict;
}

/* A service that rejects whoever asks, or tells them of queue pair @qpn. */
struct service {
	struct member *member;
	uint32_t qpn;		/* 0: rejects */
	int err;
};

static void *serve_one(void *argument)
{
	struct service *service = argument;
	struct rdma_conn_param parameters = { .qp_num = service->qpn };
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	int failed;

	if (!member_pending(service->member, WAIT_MS)) {
		service->err = ETIMEDOUT;
		return NULL;
	}
	if (rdma_get_cm_event(service->member->channel, &event)) {
		service->err = errno;
		return NULL;
	}
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		service->err = EPROTO;
		rdma_ack_cm_event(event);
		return NULL;
	}
	id = event->id;
	failed = service->qpn ? rdma_accept(id, &parameters) :
				rdma_reject(id, NULL, 0);
	service->err = failed ? errno : 0;
	rdma_ack_cm_event(event);
	rdma_destroy_id(id);
	return NULL;
}

/* One request to @service, and what who asked is told. */
static enum verdict request(struct check *check, struct service *service,
			    enum rdma_cm_event_type event, int status,
			    struct answer *answer)
{
	enum verdict verdict;
	pthread_t thread;
	int err = pthread_create(&thread, NULL, serve_one, service);

	if (err)
		return ktap_fail("start a thread: %s", strerror(err));
	verdict = ask(check, service->member, event, status, answer);
	pthread_join(thread, NULL);
	return verdict == PASS ? bench_errno("the service", service->err, 0) :
				 verdict;
}

/* rdma_reject(3) answers a datagram client, too: that there is no service for him. */
enum verdict case_rejected(void *context, int arg)
{
	struct check *check = context;
	struct service service = { .qpn = 0 };
	struct answer answer;
	enum verdict verdict = step_bound(check, arg, &service.member);

	if (verdict == PASS)
		verdict = step_queue_pair(check, service.member);
	if (verdict == PASS && rdma_listen(service.member->id, 1))
		verdict = ktap_fail("rdma_listen: %s", strerror(errno));
	if (verdict == PASS)
		verdict = request(check, &service, RDMA_CM_EVENT_UNREACHABLE,
				  SIDR_REJECTED, &answer);
	if (verdict != PASS)
		return verdict;
	service.qpn = seat_of(check, service.member)->qpn;
	verdict = request(check, &service, RDMA_CM_EVENT_ESTABLISHED, 0,
			  &answer);
	if (verdict == PASS && (answer.qpn != service.qpn ||
				answer.qkey != RDMA_UDP_QKEY))
		verdict = ktap_fail("the service tells of QP %u, Q_Key 0x%x, not of QP %u",
				    answer.qpn, answer.qkey, service.qpn);
	return verdict;
}

/* An address of our network that answers to no ARP and no neighbour solicitation. */
static union ibv_gid nobody(const union ibv_gid *address)
{
	union ibv_gid gid = *address;

	gid.raw[15] = 250;
	return gid;
}

/* What cannot be resolved is told by an event. The identifier is good for another. */
enum verdict case_no_machine(void *context, int arg)
{
	struct check *check = context;
	const union ibv_gid *there = node_gid(asker(check), arg);
	union ibv_gid gone = nobody(there);
	struct member_event event;
	struct member *member;
	enum verdict verdict = step_bound(check, arg, &member);
	int err;

	if (verdict != PASS)
		return verdict;
	err = member_ask_address(member, NULL, &gone, 1, &event);
	verdict = bench_errno("rdma_resolve_addr", err, 0);
	if (verdict != PASS)
		return verdict;
	if (event.type != RDMA_CM_EVENT_ADDR_ERROR ||
	    event.status != -ETIMEDOUT)
		return ktap_fail("%s gives event %s, status %d",
				 gid_text(&gone), rdma_event_str(event.type),
				 event.status);
	err = member_ask_address(member, NULL, there, 1, &event);
	verdict = bench_errno("rdma_resolve_addr of a machine", err, 0);
	if (verdict == PASS && event.type != RDMA_CM_EVENT_ADDR_RESOLVED)
		verdict = ktap_fail("%s gives event %s, status %d afterwards",
				    gid_text(there), rdma_event_str(event.type),
				    event.status);
	return verdict;
}
