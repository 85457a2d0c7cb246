// SPDX-License-Identifier: GPL-2.0
/*
 * bench-rate: how many pairs of attach and detach threads get done, on groups of
 * their own or all on one; and how many pairs go well before the first fails.
 *
 * A group has room for eight queue pairs. On one group more threads than that
 * share them, each with an MLID of its own.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "counter.h"
#include "crowd.h"
#include "sample.h"

#define MAX_THREADS 64
#define GROUP_MEMBERS 8
#define RATE_OCTET 102
#define CHURN_OCTET 103
#define CHURN_GROUPS 60000

struct worker {
	pthread_t thread;
	struct ibv_qp *qp;
	union ibv_gid group;
	uint16_t lid;
	uint64_t pairs;
	uint64_t failures;
	int first_error;
};

/* Time of all processors since the start, in ticks. */
struct processors {
	unsigned long long idle;
	unsigned long long all;
};

static atomic_bool stop;
static pthread_barrier_t start_line;

static void note(struct worker *worker, int err)
{
	if (!worker->failures++)
		worker->first_error = err;
}

static void *work(void *data)
{
	struct worker *worker = data;

	pthread_barrier_wait(&start_line);
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		int err = ibv_attach_mcast(worker->qp, &worker->group, worker->lid);

		if (!err)
			err = ibv_detach_mcast(worker->qp, &worker->group, worker->lid);
		if (err)
			note(worker, err);
		else
			worker->pairs++;
	}
	return NULL;
}

static struct processors processors_now(void)
{
	/* user, nice, system, idle, iowait, irq, softirq, steal: guest time is in user. */
	unsigned long long value[8] = { 0 };
	struct processors now = { 0 };
	FILE *file = fopen("/proc/stat", "r");
	int i;

	if (!file)
		return now;
	if (fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &value[0], &value[1],
		   &value[2], &value[3], &value[4], &value[5], &value[6], &value[7]) == 8) {
		for (i = 0; i < 8; i++)
			now.all += value[i];
		now.idle = value[3] + value[4];
	}
	fclose(file);
	return now;
}

static void wait_ms(uint32_t milliseconds)
{
	struct timespec left = {
		.tv_sec = milliseconds / 1000,
		.tv_nsec = milliseconds % 1000 * 1000000L,
	};

	while (nanosleep(&left, &left))
		;
}

static void print_rate(struct worker *workers, uint32_t threads, bool one_group,
		       const struct samples *samples, double idle)
{
	uint64_t pairs = 0, failures = 0;
	int first_error = 0;
	uint32_t i;

	for (i = 0; i < threads; i++) {
		pairs += workers[i].pairs;
		failures += workers[i].failures;
		first_error = first_error ? first_error : workers[i].first_error;
	}
	printf("{\"what\":\"rate\",\"threads\":%u,\"one_group\":%s,\"pairs\":%llu", threads,
	       one_group ? "true" : "false", (unsigned long long)pairs);
	printf(",\"idle\":%.4f", idle);
	printf(",\"ns\":%llu,\"failures\":%llu,\"error\":\"%s\"",
	       (unsigned long long)samples->costs[0].ns, (unsigned long long)failures,
	       first_error ? strerror(first_error) : "");
	if (counter_present())
		printf(",\"all\":%llu,\"kernel\":%llu,\"spin\":%llu,\"own\":%llu",
		       (unsigned long long)samples->costs[0].all,
		       (unsigned long long)samples->costs[0].kernel,
		       (unsigned long long)samples->costs[0].spin,
		       (unsigned long long)samples->costs[0].own);
	printf("}\n");
}

static int close_all(struct crowd *crowd)
{
	int err = crowd_close(crowd);

	if (err)
		fprintf(stderr, "leave groups and destroy queue pairs: %s\n", strerror(err));
	return err;
}

static int rate(const struct device *device, uint32_t threads, bool one_group, uint32_t ms,
		uint32_t profile)
{
	struct worker workers[MAX_THREADS] = { 0 };
	struct processors before, after;
	uint32_t i, started = 0, qps = threads;
	struct samples samples;
	struct crowd crowd;
	int err;

	if (one_group && qps > GROUP_MEMBERS)
		qps = GROUP_MEMBERS;
	err = crowd_open(&crowd, device, qps);
	if (err)
		return err;
	if (!samples_init(&samples, "rate", 1)) {
		crowd_close(&crowd);
		return ENOMEM;
	}
	pthread_barrier_init(&start_line, NULL, threads + 1);
	for (i = 0; i < threads; i++) {
		workers[i].qp = crowd.qps[i % qps];
		workers[i].lid = (uint16_t)(i / qps);
		workers[i].group = crowd_group(RATE_OCTET, one_group ? 0 : i);
	}
	for (; started < threads; started++) {
		err = pthread_create(&workers[started].thread, NULL, work, &workers[started]);
		if (err) {
			/* The others wait at the start line for good. */
			fprintf(stderr, "start thread %u: %s\n", started, strerror(err));
			exit(EXIT_FAILURE);
		}
	}
	samples_off_reset();
	if (profile != NO_PROFILE)
		counter_ask(COUNTER_PROFILE_START, 0, 0, 0);
	before = processors_now();
	samples_begin(&samples);
	pthread_barrier_wait(&start_line);
	wait_ms(ms);
	after = processors_now();
	atomic_store(&stop, true);
	for (i = 0; i < started; i++)
		pthread_join(workers[i].thread, NULL);
	samples_end(&samples);
	if (profile != NO_PROFILE)
		counter_ask(COUNTER_PROFILE_WRITE, profile, 0, 0);
	print_rate(workers, threads, one_group, &samples,
		   after.all > before.all ?
		   (double)(after.idle - before.idle) / (double)(after.all - before.all) : 0);
	samples_off_print(one_group ? "rate_one" : "rate", threads);
	samples_free(&samples);
	return close_all(&crowd);
}

static int run_churn(const struct device *device, uint64_t pairs)
{
	uint64_t done = 0, start;
	const char *step = "";
	struct crowd crowd;
	int err, ret;

	err = crowd_open(&crowd, device, 1);
	if (err)
		return err;
	start = samples_now();
	while (done < pairs) {
		union ibv_gid group = crowd_group(CHURN_OCTET, (uint32_t)(done % CHURN_GROUPS));

		step = "attach";
		err = ibv_attach_mcast(crowd.qps[0], &group, 0);
		if (err)
			break;
		step = "detach";
		err = ibv_detach_mcast(crowd.qps[0], &group, 0);
		if (err)
			break;
		done++;
	}
	printf("{\"what\":\"churn\",\"asked\":%llu,\"pairs\":%llu,\"ns\":%llu,\"error\":\"%s%s%s\"}\n",
	       (unsigned long long)pairs, (unsigned long long)done,
	       (unsigned long long)(samples_now() - start), err ? step : "", err ? ": " : "",
	       err ? strerror(err) : "");
	ret = close_all(&crowd);
	return err ? 0 : ret;
}

int main(int argc, char **argv)
{
	uint32_t threads = 1, ms = 1000, pairs = 0, profile = NO_PROFILE;
	const char *name = NULL;
	bool one_group = false;
	const struct choice choices[] = {
		CHOICE_DEVICE(&name),
		CHOICE_NUMBER('t', "threads", "N", &threads, "threads (1)"),
		CHOICE_FLAG('o', "one-group", &one_group,
			    "all threads use one group (default: one each)"),
		CHOICE_NUMBER('m', "milliseconds", "N", &ms,
			      "for how long (1000)"),
		CHOICE_NUMBER('n', "pairs", "N", &pairs,
			      "no threads: so many pairs of changing groups, or up to\n"
			      "the first failure"),
		CHOICE_CODE,
		CHOICE_SPIN,
		CHOICE_PROFILE(&profile, "write a profile under that number"),
	};
	const struct command command = {
		.name = "bench-rate",
		.words = "[OPTION]...",
		.about = "Attach and detach, again and again; the result is a line of JSON.",
		COMMAND_CHOICES(choices),
	};
	struct device device;
	int err;

	if (command_read(&command, argc, argv) != argc)
		return command_refuse(&command, "there are only options");
	if (!threads || threads > MAX_THREADS)
		return command_refuse(&command, "--threads %u: 1 to %u", threads,
				      MAX_THREADS);
	if (device_open(&device, name))
		return EXIT_FAILURE;
	err = pairs ? run_churn(&device, pairs) :
		rate(&device, threads, one_group, ms, profile);
	device_close(&device);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
