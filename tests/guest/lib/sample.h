/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What an operation costs: time, and instructions where they are counted.
 */
#ifndef GUEST_SAMPLE_H
#define GUEST_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "command.h"

/* What a profile is written under if there is to be none. */
#define NO_PROFILE UINT32_MAX

struct cost {
	uint64_t ns;
	uint64_t all;		/* instructions of all vCPUs */
	uint64_t kernel;	/* those of the kernel, modules included */
	uint64_t spin;		/* those that waited for locks, see samples_spin() */
	uint64_t own;	/* those in the ranges given with samples_code() */
};

struct samples {
	const char *name;
	uint32_t count;
	uint32_t capacity;
	struct cost *costs;
	struct cost start;
};

/* Monotonic time in nanoseconds. */
uint64_t samples_now(void);

/*
 * Names a range of the driver's code, "0xSTART-0xEND". Returns false for what is
 * no range, and for one range too many.
 */
bool samples_code(const char *text);

/* The same for a function that only waits: its instructions are counted apart. */
bool samples_spin(const char *text);

/* Options of programs that measure. */
#define CHOICE_CODE \
	CHOICE_CALL('c', "code", "START-END", samples_code, \
		    "addresses of the driver's code (may be repeated)")
#define CHOICE_SPIN \
	CHOICE_CALL('s', "spin", "START-END", samples_spin, \
		    "addresses of a function that waits (may be repeated)")
#define CHOICE_PROFILE(into, help) \
	CHOICE_NUMBER('p', "profile", "N", into, help)

/* Returns false without memory. */
bool samples_init(struct samples *samples, const char *name, uint32_t capacity);
void samples_free(struct samples *samples);

/* Around what is measured. The end is not kept when the samples are full. */
void samples_begin(struct samples *samples);
void samples_end(struct samples *samples);

/* One line of JSON: the costs, @groups and the name. */
void samples_print(const struct samples *samples, uint32_t groups);

/* The longest times with interrupts off since the reset, as a line of JSON. */
void samples_off_reset(void);
void samples_off_print(const char *name, uint32_t groups);

#endif
