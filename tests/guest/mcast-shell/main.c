// SPDX-License-Identifier: GPL-2.0
/*
 * mcast-shell: does to queue pairs what it reads line by line, and answers each
 * line with one of JSON. For tests that have other things to do in between.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "member.h"
#include "storm.h"

#define ENDPOINTS STORM_ENDPOINTS
#define WORDS 6
#define RECEIVED 2048

static const char verbs_help[] =
	"  open ID 4|6 [NETDEV|-]     make a UD queue pair; with an address on NETDEV,\n"
	"                             with none, without NETDEV with any\n"
	"  bind ID ADDRESS [DEPTH]    make one by rdma_cm, with an address of ours\n"
	"  join ID GROUP [send]       join by rdma_cm, send-only if asked, and wait for the\n"
	"                             event; EPROTO if that is an error\n"
	"  leave ID GROUP             leave by rdma_cm\n"
	"  joins ID GROUP N           join N groups by rdma_cm, from GROUP on, and then wait\n"
	"                             for all events\n"
	"  leaves ID GROUP N          leave them\n"
	"  attach ID GROUP [MLID]     attach it\n"
	"  detach ID GROUP [MLID]     detach it\n"
	"  address ID GROUP           make an address handle\n"
	"  send ID GROUP N TOKEN      send N datagrams, the first with this token\n"
	"  each ID GROUP N TOKEN      send one to each of N groups, from GROUP on\n"
	"  mark ID ADDRESS TOKEN [QPN]  send a marker to a group, or to a queue pair\n"
	"  collect ID TOKEN           say what came up to the marker with this token\n"
	"  qkey ID VALUE              change the Q_Key in place\n"
	"  fail ID                    move it to ERR\n"
	"  flag 4|6                   try to make one that blocks its own multicast\n"
	"  close ID                   destroy it\n"
	"  list                       say who is attached to what\n"
	"  storm THREADS GROUPS STEPS SEED [LEAVE]\n"
	"                             threads attach and detach all there are; those in\n"
	"                             a group leave one in LEAVE percent of the steps;\n"
	"                             counts errors by name\n"
	"  nth N                      have the kernel fail what can fail, memory or access\n"
	"                             to it, the Nth time in the next line; that answers\n"
	"                             \"met\" if there was an Nth time. Debug kernel only";

/* What separates words. */
static const char blank[] = "\n\t ";

static struct endpoint endpoints[ENDPOINTS];
/* Of those that rdma_cm has made. */
static struct member members[ENDPOINTS];
/* What `nth` ordered for the next line. */
static unsigned long next_nth;
static struct received received[RECEIVED];

/* One line: the words, and what the answer says besides error and time. */
struct request {
	const struct device *device;
	char *word[WORDS];
	unsigned int words;
	struct endpoint *endpoint;
	uint32_t token;		/* of the next datagram of `each` */
	char *more;
	size_t more_bytes;
};

static unsigned long number(const struct request *request, unsigned int at)
{
	return at < request->words ? strtoul(request->word[at], NULL, 0) : 0;
}

/* Word @at as an address; an errno if it is none. */
static int group(const struct request *request, unsigned int at,
		 union ibv_gid *gid)
{
	return at < request->words && gid_parse(request->word[at], gid) ?
		       0 : EINVAL;
}

static int do_open(struct request *request)
{
	enum family family = number(request, 2) == 6 ? IPV6 : IPV4;
	const char *netdev = request->words > 3 ? request->word[3] : NULL;
	int err;

	if (request->endpoint->qp)
		return EEXIST;
	if (!netdev)
		err = endpoint_open(request->endpoint, request->device, family,
				    DEFAULT_QKEY, DEFAULT_DEPTH);
	else
		err = endpoint_open_on(request->endpoint, request->device,
				       family, strcmp(netdev, "-") ? netdev : NULL,
				       DEFAULT_QKEY, DEFAULT_DEPTH);
	if (!err)
		snprintf(request->more, request->more_bytes, ", \"qpn\": %u",
			 request->endpoint->qp->qp_num);
	return err;
}

/* The rdma_cm identifier of the endpoint; it has none if @id is NULL. */
static struct member *member_of(const struct request *request)
{
	return &members[request->endpoint - endpoints];
}

static int do_bind(struct request *request)
{
	struct member *member = member_of(request);
	union ibv_gid gid;
	int err = group(request, 2, &gid);

	if (!err && request->endpoint->qp)
		err = EEXIST;
	if (!err)
		err = member_open(member, RDMA_PS_UDP);
	if (err)
		return err;
	err = member_bind(member, &gid);
	if (!err)
		err = member_endpoint(member, request->endpoint,
				      request->words > 3 ?
					      (uint32_t)number(request, 3) :
					      DEFAULT_DEPTH);
	if (err)
		member_close(member);
	else
		snprintf(request->more, request->more_bytes, ", \"qpn\": %u",
			 request->endpoint->qp->qp_num);
	return err;
}

static int do_join(struct request *request)
{
	struct member *member = member_of(request);
	struct member_event event;
	union ibv_gid gid;
	int err = group(request, 2, &gid);

	if (!err && !member->id)
		err = ENOENT;
	if (!err)
		err = member_join_as(member, &gid, request->words > 3 ?
				     RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER :
				     RDMA_MC_JOIN_FLAG_FULLMEMBER, NULL);
	if (!err)
		err = member_event(member, &event);
	if (err)
		return err;
	return event.type == RDMA_CM_EVENT_MULTICAST_JOIN ? 0 : EPROTO;
}

static int do_leave(struct request *request)
{
	struct member *member = member_of(request);
	union ibv_gid gid;
	int err = group(request, 2, &gid);

	if (!err && !member->id)
		err = ENOENT;
	return err ? err : member_leave(member, &gid);
}

/* Runs @step for each of the groups that word 2 begins and word 3 counts. */
static int for_groups(struct request *request,
		      int (*step)(struct request *request,
				  const union ibv_gid *gid))
{
	unsigned long i, count = number(request, 3);
	union ibv_gid gid;
	int err = group(request, 2, &gid);

	for (i = 0; i < count && !err; i++) {
		err = step(request, &gid);
		if (!++gid.raw[15])
			gid.raw[14]++;
	}
	return err;
}

static int join_one(struct request *request, const union ibv_gid *gid)
{
	return member_join(member_of(request), gid, NULL);
}

static int leave_one(struct request *request, const union ibv_gid *gid)
{
	return member_leave(member_of(request), gid);
}

static int do_joins(struct request *request)
{
	struct member *member = member_of(request);
	unsigned long i, count = number(request, 3);
	struct member_event event;
	int err;

	if (!member->id)
		return ENOENT;
	err = for_groups(request, join_one);
	for (i = 0; i < count && !err; i++) {
		err = member_event(member, &event);
		if (!err && event.type != RDMA_CM_EVENT_MULTICAST_JOIN)
			err = EPROTO;
	}
	return err;
}

static int do_leaves(struct request *request)
{
	return member_of(request)->id ? for_groups(request, leave_one) : ENOENT;
}

static int do_attach(struct request *request)
{
	union ibv_gid gid;
	int err = group(request, 2, &gid);

	return err ? err : endpoint_attach(request->endpoint, &gid,
					   (uint16_t)number(request, 3));
}

static int do_detach(struct request *request)
{
	union ibv_gid gid;
	int err = group(request, 2, &gid);

	return err ? err : endpoint_detach(request->endpoint, &gid,
					   (uint16_t)number(request, 3));
}

static int do_address(struct request *request)
{
	union ibv_gid gid;
	int err = group(request, 2, &gid);

	return err ? err : endpoint_address(request->endpoint, &gid);
}

static const struct datagram plain = {
	.qpn = MULTICAST_QPN,
	.qkey = DEFAULT_QKEY,
	.length = 64,
};

static int do_send(struct request *request)
{
	struct datagram datagram = plain;
	int err = group(request, 2, &datagram.to);

	datagram.token = (uint32_t)number(request, 4);
	return err ? err : endpoint_send(request->endpoint, &datagram,
					 (uint32_t)number(request, 3));
}

static int send_one(struct request *request, const union ibv_gid *gid)
{
	struct datagram datagram = plain;

	datagram.to = *gid;
	datagram.token = request->token++;
	return endpoint_send(request->endpoint, &datagram, 1);
}

static int do_each(struct request *request)
{
	request->token = (uint32_t)number(request, 4);
	return for_groups(request, send_one);
}

static int do_mark(struct request *request)
{
	struct datagram datagram = plain;
	int err = group(request, 2, &datagram.to);

	datagram.token = (uint32_t)number(request, 3);
	datagram.marker = true;
	if (request->words > 4)
		datagram.qpn = (uint32_t)number(request, 4);
	return err ? err : endpoint_send(request->endpoint, &datagram, 1);
}

static int do_collect(struct request *request)
{
	char *at = request->more, *end = at + request->more_bytes;
	uint32_t count, i;
	int err;

	err = endpoint_collect(request->endpoint, (uint32_t)number(request, 2),
			       WAIT_MS, received, RECEIVED, &count);
	at += snprintf(at, (size_t)(end - at), ", \"got\": [");
	for (i = 0; i < count && end - at > 128; i++)
		at += snprintf(at, (size_t)(end - at),
			       "%s{\"token\": %u, \"group\": \"%s\", \"from\": \"%s\", \"right\": %s}",
			       i ? ", " : "", received[i].token,
			       gid_text(&received[i].header.destination),
			       gid_text(&received[i].header.source),
			       received[i].intact &&
			       !received[i].header.fault[0] ? "true" : "false");
	snprintf(at, (size_t)(end - at), "]");
	return err;
}

static int do_qkey(struct request *request)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.qkey = (uint32_t)number(request, 2),
	};

	return ibv_modify_qp(request->endpoint->qp, &attr,
			     IBV_QP_STATE | IBV_QP_QKEY);
}

static int do_fail(struct request *request)
{
	return endpoint_fail(request->endpoint);
}

/* Leaves what was joined; what was attached by hand is for the caller to detach. */
static int do_close(struct request *request)
{
	struct member *member = member_of(request);
	int err;

	member_leave_all(member);
	err = endpoint_close(request->endpoint);
	return err ? err : member_close(member);
}

/* What ibv_create_qp_ex() says to a queue pair that is not to hear itself. */
static int do_flag(struct request *request)
{
	struct ibv_context *context = request->device->context;
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_UD,
		.send_cq = cq,
		.recv_cq = cq,
		.pd = pd,
		.cap = {
			.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
	};
	struct ibv_qp *qp = NULL;
	int err = ENOMEM;

	if (pd && cq) {
		qp = ibv_create_qp_ex(context, &attr);
		err = qp ? 0 : errno;
	}
	if (qp)
		ibv_destroy_qp(qp);
	if (cq)
		ibv_destroy_cq(cq);
	if (pd)
		ibv_dealloc_pd(pd);
	return err;
}

static int do_nth(struct request *request)
{
	next_nth = number(request, 1);
	return next_nth ? 0 : EINVAL;
}

static int do_list(struct request *request)
{
	char *at = request->more, *end = at + request->more_bytes;
	const char *separator = "";
	unsigned int id;
	size_t i;

	at += snprintf(at, (size_t)(end - at), ", \"in\": [");
	for (id = 0; id < ENDPOINTS; id++) {
		const struct endpoint *endpoint = &endpoints[id];

		for (i = 0; i < endpoint->attached && end - at > 128; i++) {
			at += snprintf(at, (size_t)(end - at),
				       "%s{\"qpn\": %u, \"group\": \"%s\"}",
				       separator, endpoint->qp->qp_num,
				       gid_text(&endpoint->attachments[i].group));
			separator = ", ";
		}
	}
	snprintf(at, (size_t)(end - at), "]");
	return end - at > 128 ? 0 : ENOBUFS;
}

/* Adds ", "NAME": {"ENOMEM": 3}" to the answer. */
static void say_errors(struct request *request, const char *name,
		       unsigned int counts[TEAM_MAX][STORM_ERRNOS])
{
	size_t used = strlen(request->more);
	char *at = request->more + used;
	char *end = request->more + request->more_bytes;
	const char *separator = "";
	int err, thread;

	at += snprintf(at, (size_t)(end - at), ", \"%s\": {", name);
	for (err = 1; err < STORM_ERRNOS; err++) {
		unsigned int sum = 0;

		for (thread = 0; thread < TEAM_MAX; thread++)
			sum += counts[thread][err];
		if (!sum)
			continue;
		at += snprintf(at, (size_t)(end - at), "%s\"%s\": %u", separator,
			       strerrorname_np(err) ? : "unknown", sum);
		separator = ", ";
	}
	snprintf(at, (size_t)(end - at), "}");
}

static int do_storm(struct request *request)
{
	static struct storm storm;

	storm = (struct storm){
		.endpoints = endpoints,
		.count = ENDPOINTS,
		.threads = (unsigned int)number(request, 1),
		.groups = (unsigned int)number(request, 2),
		.steps = (unsigned int)number(request, 3),
		.seed = (unsigned int)number(request, 4),
		.leave = (unsigned int)number(request, 5),
	};
	if (!storm.threads || storm.threads > TEAM_MAX || !storm.groups ||
	    storm.groups > STORM_GROUPS)
		return EINVAL;
	storm_run(&storm);
	say_errors(request, "attach", storm.attach);
	say_errors(request, "detach", storm.detach);
	return 0;
}

static const struct verb {
	const char *name;
	int (*run)(struct request *request);
	bool on_endpoint;
	bool makes_endpoint;
} verbs[] = {
	{ "open", do_open, true, true },
	{ "bind", do_bind, true, true },
	{ "join", do_join, true, false },
	{ "leave", do_leave, true, false },
	{ "joins", do_joins, true, false },
	{ "leaves", do_leaves, true, false },
	{ "attach", do_attach, true, false },
	{ "detach", do_detach, true, false },
	{ "address", do_address, true, false },
	{ "send", do_send, true, false },
	{ "each", do_each, true, false },
	{ "mark", do_mark, true, false },
	{ "collect", do_collect, true, false },
	{ "qkey", do_qkey, true, false },
	{ "fail", do_fail, true, false },
	{ "close", do_close, true, false },
	{ "flag", do_flag, false, false },
	{ "list", do_list, false, false },
	{ "storm", do_storm, false, false },
	{ "nth", do_nth, false, false },
};

static int execute(struct request *request)
{
	size_t i;

	for (i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		unsigned long id = number(request, 1);

		if (strcmp(verbs[i].name, request->word[0]))
			continue;
		if (!verbs[i].on_endpoint)
			return verbs[i].run(request);
		if (request->words < 2 || id >= ENDPOINTS)
			return ENOENT;
		request->endpoint = &endpoints[id];
		if (!request->endpoint->qp && !verbs[i].makes_endpoint)
			return ENOENT;
		return verbs[i].run(request);
	}
	return EOPNOTSUPP;
}

/*
 * Executes a request whose @nth operation that can fail does so
 * (Documentation/fault-injection of the kernel, "fail-nth").
 */
static int execute_failing(struct request *request, unsigned long nth)
{
	char text[24];
	size_t used;
	ssize_t got;
	int fd, err;

	fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno;
	snprintf(text, sizeof(text), "%lu", nth);
	if (write(fd, text, strlen(text)) < 0) {
		err = errno;
		close(fd);
		return err;
	}
	err = execute(request);
	/* 0 once it has failed, else how far off that is. */
	got = pread(fd, text, sizeof(text) - 1, 0);
	text[got > 0 ? got : 0] = '\0';
	if (write(fd, "0", 1) < 0)
		perror("mcast-shell: fail-nth");
	close(fd);
	used = strlen(request->more);
	snprintf(request->more + used, request->more_bytes - used, ", \"met\": %s",
		 got > 0 && !strtoul(text, NULL, 0) ? "true" : "false");
	return err;
}

static long milliseconds(const struct timespec *from)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - from->tv_sec) * 1000 +
	       (now.tv_nsec - from->tv_nsec) / 1000000;
}

static void serve(const struct device *device)
{
	static char more[RECEIVED * 128];
	char line[512];

	while (fgets(line, sizeof(line), stdin)) {
		struct request request = {
			.device = device,
			.more = more,
			.more_bytes = sizeof(more),
		};
		unsigned long nth = next_nth;
		struct timespec start;
		char *rest, *word;
		int err;

		for (word = strtok_r(line, blank, &rest);
		     word && request.words < WORDS;
		     word = strtok_r(NULL, blank, &rest))
			request.word[request.words++] = word;
		if (!request.words)
			continue;
		more[0] = '\0';
		clock_gettime(CLOCK_MONOTONIC, &start);
		next_nth = 0;
		err = nth ? execute_failing(&request, nth) : execute(&request);
		printf("{\"err\": \"%s\", \"ms\": %ld%s}\n",
		       err ? strerrorname_np(err) ? : "unknown" : "",
		       milliseconds(&start), more);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	const char *name = NULL;
	const struct choice choices[] = { CHOICE_DEVICE(&name) };
	const struct command command = {
		.name = "mcast-shell",
		.words = "[OPTION]...",
		.about = "Obey lines, answer each with JSON: \"err\" is the name of an errno or empty,\n"
			 "\"ms\" how long it took. ID is a number from 0, GROUP an address.",
		.more = verbs_help,
		COMMAND_CHOICES(choices),
	};
	struct device device;
	int i;

	if (command_read(&command, argc, argv) != argc)
		return command_refuse(&command, "there are only options");
	if (device_open(&device, name))
		return EXIT_FAILURE;
	serve(&device);
	for (i = 0; i < ENDPOINTS; i++) {
		member_leave_all(&members[i]);
		endpoint_detach_all(&endpoints[i]);
		endpoint_close(&endpoints[i]);
		member_close(&members[i]);
	}
	device_close(&device);
	return EXIT_SUCCESS;
}
