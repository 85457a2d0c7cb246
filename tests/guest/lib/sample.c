// SPDX-License-Identifier: GPL-2.0
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "counter.h"
#include "sample.h"

static unsigned int ranges, spins;

uint64_t samples_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static bool set(enum counter_request request, const char *text, unsigned int *count,
		unsigned int limit)
{
	uint64_t start, end;

	if (*count == limit ||
	    sscanf(text, "%" SCNx64 "-%" SCNx64, &start, &end) != 2 || start >= end)
		return false;
	counter_ask(request, start, end, (*count)++);
	return true;
}

bool samples_code(const char *text)
{
	return set(COUNTER_SET_RANGE, text, &ranges, COUNTER_RANGES);
}

bool samples_spin(const char *text)
{
	return set(COUNTER_SET_SPIN, text, &spins, COUNTER_SPINS);
}

bool samples_init(struct samples *samples, const char *name, uint32_t capacity)
{
	memset(samples, 0, sizeof(*samples));
	samples->name = name;
	samples->capacity = capacity;
	samples->costs = calloc(capacity, sizeof(*samples->costs));
	return samples->costs;
}

void samples_free(struct samples *samples)
{
	free(samples->costs);
	samples->costs = NULL;
}

static struct cost cost_now(void)
{
	struct cost cost = {
		.all = counter_ask(COUNTER_ALL, 0, 0, 0),
		.kernel = counter_ask(COUNTER_KERNEL, 0, 0, 0),
		.spin = counter_ask(COUNTER_SPINNING, 0, 0, 0),
	};
	unsigned int i;

	for (i = 0; i < ranges; i++)
		cost.own += counter_ask(COUNTER_IN_RANGE, i, 0, 0);
	cost.ns = samples_now();
	return cost;
}

void samples_begin(struct samples *samples)
{
	samples->start = cost_now();
}

void samples_end(struct samples *samples)
{
	uint64_t ns = samples_now();
	struct cost now, *cost;

	if (samples->count == samples->capacity)
		return;
	now = cost_now();
	cost = &samples->costs[samples->count++];
	cost->ns = ns - samples->start.ns;
	cost->all = now.all - samples->start.all;
	cost->kernel = now.kernel - samples->start.kernel;
	cost->spin = now.spin - samples->start.spin;
	cost->own = now.own - samples->start.own;
}

static void print_column(const struct samples *samples, const char *name, size_t offset)
{
	uint32_t i;

	printf(",\"%s\":[", name);
	for (i = 0; i < samples->count; i++) {
		uint64_t value;

		memcpy(&value, (const char *)&samples->costs[i] + offset, sizeof(value));
		printf("%s%" PRIu64, i ? "," : "", value);
	}
	printf("]");
}

void samples_print(const struct samples *samples, uint32_t groups)
{
	printf("{\"what\":\"cost\",\"op\":\"%s\",\"groups\":%u", samples->name, groups);
	print_column(samples, "ns", offsetof(struct cost, ns));
	if (counter_present()) {
		print_column(samples, "all", offsetof(struct cost, all));
		print_column(samples, "kernel", offsetof(struct cost, kernel));
		print_column(samples, "spin", offsetof(struct cost, spin));
		print_column(samples, "own", offsetof(struct cost, own));
	}
	printf("}\n");
}

void samples_off_reset(void)
{
	counter_ask(COUNTER_OFF_RESET, 0, 0, 0);
}

static void print_off(const char *name, uint64_t kind)
{
	uint64_t longest = 0, where = 0, until = 0;
	unsigned int i;

	for (i = 0; i < ranges; i++) {
		uint64_t length = counter_ask(COUNTER_OFF_LONGEST, i, kind, 0);

		if (length <= longest)
			continue;
		longest = length;
		where = counter_ask(COUNTER_OFF_WHERE, i, kind, 0);
		until = counter_ask(COUNTER_OFF_UNTIL, i, kind, 0);
	}
	printf(",\"%s\":%" PRIu64 ",\"%s_at\":\"%" PRIx64 "\",\"%s_until\":\"%" PRIx64 "\"",
	       name, longest, name, where, name, until);
}

void samples_off_print(const char *name, uint32_t groups)
{
	if (!counter_present())
		return;
	printf("{\"what\":\"off\",\"op\":\"%s\",\"groups\":%u", name, groups);
	print_off("lock", 0);
	print_off("interrupt", 1);
	printf("}\n");
}
