// SPDX-License-Identifier: GPL-2.0
/*
 * ud-check: unicast datagrams between two machines, both ways, or within one.
 *
 * The devices need not be of one kind: run between a card and rdma_rxe it
 * shows that both speak the same wire format.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "command.h"

/* Arguments of a case: family, direction, payload bytes. */
#define BACK 0x100
#define CASE_ARG(family, back, size) \
	((int)(family) | ((back) ? BACK : 0) | (size) << 16)
#define CASE_FAMILY(arg) ((enum family)((arg) & 0xff))
#define CASE_SIZE(arg) ((uint32_t)(arg) >> 16)

/* A sender and a receiver, the way the case wants it. */
static enum verdict pair(struct bench *bench, int arg, struct shot *shot,
			 struct party **receiver)
{
	enum family family = CASE_FAMILY(arg);
	unsigned int from = arg & BACK ? 1 : 0;
	enum verdict verdict;

	memset(shot, 0, sizeof(*shot));
	shot->length = CASE_SIZE(arg);
	verdict = bench_party(bench, from, family, &shot->sender);
	if (verdict == PASS)
		verdict = bench_party(bench, from + 1, family, receiver);
	if (verdict == PASS) {
		shot->to = *node_gid((*receiver)->node, family);
		shot->qpn = (*receiver)->qpn;
	}
	return verdict;
}

static enum verdict deliver(struct bench *bench, struct shot *shot,
			    struct party *receiver, uint32_t copies)
{
	enum verdict verdict = bench_shoot(bench, shot);

	return verdict == PASS ? bench_expect(bench, shot, receiver, copies) :
				 verdict;
}

static enum verdict case_size(void *bench, int arg)
{
	struct party *receiver;
	struct shot shot;
	enum verdict verdict = pair(bench, arg, &shot, &receiver);

	return verdict == PASS ? deliver(bench, &shot, receiver, 1) : verdict;
}

static enum verdict case_immediate(void *bench, int arg)
{
	struct party *receiver;
	struct shot shot;
	enum verdict verdict = pair(bench, arg, &shot, &receiver);

	shot.immediate = 0x80c0ffee;
	shot.has_immediate = true;
	return verdict == PASS ? deliver(bench, &shot, receiver, 1) : verdict;
}

static enum verdict case_inline(void *bench, int arg)
{
	struct party *receiver;
	struct shot shot;
	enum verdict verdict = pair(bench, arg, &shot, &receiver);

	shot.inlined = true;
	return verdict == PASS ? deliver(bench, &shot, receiver, 1) : verdict;
}

static enum verdict case_stream(void *context, int arg)
{
	struct bench *bench = context;
	enum family family = CASE_FAMILY(arg);
	unsigned int from = arg & BACK ? 1 : 0;
	struct party *receiver;
	enum verdict verdict;
	struct shot shot = {
		.length = CASE_SIZE(arg),
		.count = 300,
	};

	verdict = bench_party(bench, from, family, &shot.sender);
	if (verdict == PASS)
		verdict = bench_party_with(bench, from + 1, family,
					   DEFAULT_QKEY, 400, &receiver);
	if (verdict != PASS)
		return verdict;
	shot.to = *node_gid(receiver->node, family);
	shot.qpn = receiver->qpn;
	return deliver(bench, &shot, receiver, 1);
}

static enum verdict case_wrong_qkey(void *context, int arg)
{
	struct bench *bench = context;
	enum family family = CASE_FAMILY(arg);
	unsigned int from = arg & BACK ? 1 : 0;
	struct party *receiver;
	enum verdict verdict;
	struct shot shot = {
		.length = CASE_SIZE(arg),
	};

	verdict = bench_party(bench, from, family, &shot.sender);
	if (verdict == PASS)
		verdict = bench_party_with(bench, from + 1, family,
					   DEFAULT_QKEY + 1, DEFAULT_DEPTH,
					   &receiver);
	if (verdict != PASS)
		return verdict;
	shot.to = *node_gid(receiver->node, family);
	shot.qpn = receiver->qpn;
	return deliver(bench, &shot, receiver, 0);
}

/* A datagram to a queue pair that is not there is lost, and nothing else is. */
static enum verdict case_no_such_qp(void *bench, int arg)
{
	struct party *receiver;
	struct shot shot;
	enum verdict verdict = pair(bench, arg, &shot, &receiver);

	if (verdict != PASS)
		return verdict;
	shot.qpn = 0x00abcd;
	verdict = deliver(bench, &shot, receiver, 0);
	shot.qpn = receiver->qpn;
	return verdict == PASS ? deliver(bench, &shot, receiver, 1) : verdict;
}

static const struct {
	const char *name;
	enum verdict (*run)(void *bench, int arg);
	unsigned int size;
} rows[] = {
	{ "payload of 0 bytes", case_size, 0 },
	{ "payload of 1 byte", case_size, 1 },
	{ "payload of 1023 bytes", case_size, 1023 },
	{ "payload of 1024 bytes", case_size, 1024 },
	{ "immediate data", case_immediate, 100 },
	{ "inline payload", case_inline, 48 },
	{ "300 datagrams arrive, in order", case_stream, 256 },
	{ "another Q_Key is dropped", case_wrong_qkey, 64 },
	{ "unknown QP number is dropped", case_no_such_qp, 64 },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void after(void *context)
{
	bench_clear(context);
}

static int lead(struct device *device, const char *address, const char *only)
{
	static const char *const ways[] = { "there", "back" };
	static const enum family families[] = { IPV4, IPV6 };
	static struct test_case cases[4 * ROWS];
	static char names[4 * ROWS][80];
	static struct bench bench;
	size_t count = 0, row, family, way, directions = address ? 2 : 1;
	int failures;

	bench.device = device;
	bench.next_token = 1000;
	if (node_local(&bench.nodes[0], device))
		return EXIT_FAILURE;
	bench.node_count = 1;
	if (address) {
		if (node_connect(&bench.nodes[1], address, 6 * WAIT_MS))
			return EXIT_FAILURE;
		bench.node_count = 2;
	}
	for (family = 0; family < 2; family++)
		for (way = 0; way < directions; way++)
			for (row = 0; row < ROWS; row++) {
				snprintf(names[count], sizeof(names[0]),
					 "IPv%d, %s: %s", families[family],
					 address ? ways[way] : "within",
					 rows[row].name);
				cases[count] = (struct test_case){
					.name = names[count],
					.run = rows[row].run,
					.arg = CASE_ARG(families[family], way,
							rows[row].size),
				};
				count++;
			}
	failures = ktap_run(cases, count, only, &bench, after);
	while (bench.node_count)
		node_close(&bench.nodes[--bench.node_count]);
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	const char *name = NULL, *only = NULL;
	bool follow = false;
	const struct choice choices[] = {
		CHOICE_DEVICE(&name),
		CHOICE_ONLY(&only),
		CHOICE_FLAG('f', "follow", &follow,
			    "serve the leader, which runs on another node"),
	};
	const struct command command = {
		.name = "ud-check",
		.words = "[OPTION]... [NODE-ADDRESS]\n--follow",
		.about = "Check UD unicast between this node and another, or within this one;\n"
			 "results in KTAP.",
		COMMAND_CHOICES(choices),
	};
	int words = command_read(&command, argc, argv), status;
	struct device device;

	if (argc - words > 1)
		return command_refuse(&command, "at most one address");
	if (device_open(&device, name))
		return EXIT_FAILURE;
	if (follow)
		status = node_serve(&device, 6 * WAIT_MS) ? EXIT_FAILURE :
							    EXIT_SUCCESS;
	else
		status = lead(&device, argv[words], only);
	device_close(&device);
	return status;
}
