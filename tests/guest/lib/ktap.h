/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Test results in KTAP (Documentation/dev-tools/ktap.rst in the kernel tree).
 *
 * A program is a table of cases. ktap_run() prints the plan, runs each case
 * and prints one result line for each; a case that does not pass states why
 * with ktap_fail() or ktap_skip() and the reason stands beside its result.
 */
#ifndef GUEST_KTAP_H
#define GUEST_KTAP_H

#include <stddef.h>

enum verdict {
	PASS,
	FAIL,
	SKIP,
};

struct test_case {
	const char *name;
	enum verdict (*run)(void *context, int arg);
	int arg;
};

enum verdict ktap_fail(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
enum verdict ktap_skip(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
/* What the last of these two said. */
const char *ktap_reason(void);
void ktap_note(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/*
 * Runs every case whose name contains @only (all when NULL) and calls @after
 * (may be NULL) once each is over. Returns the number of failures.
 */
int ktap_run(const struct test_case *cases, size_t count, const char *only,
	     void *context, void (*after)(void *context));

#endif
