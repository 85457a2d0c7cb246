// SPDX-License-Identifier: GPL-2.0
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ktap.h"

/* Why the running case did not pass. */
static char reason[512];

enum verdict ktap_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	return FAIL;
}

enum verdict ktap_skip(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	return SKIP;
}

const char *ktap_reason(void)
{
	return reason;
}

void ktap_note(const char *format, ...)
{
	va_list args;

	fputs("# ", stdout);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

static bool chosen(const struct test_case *test, const char *only)
{
	return !only || strstr(test->name, only);
}

int ktap_run(const struct test_case *cases, size_t count, const char *only,
	     void *context, void (*after)(void *context))
{
	int failures = 0, number = 0, planned = 0;
	size_t i;

	for (i = 0; i < count; i++)
		planned += chosen(&cases[i], only);
	printf("KTAP version 1\n1..%d\n", planned);
	fflush(stdout);

	for (i = 0; i < count; i++) {
		const struct test_case *test = &cases[i];

		if (!chosen(test, only))
			continue;
		number++;
		reason[0] = '\0';
		switch (test->run(context, test->arg)) {
		case PASS:
			printf("ok %d - %s\n", number, test->name);
			break;
		case SKIP:
			printf("ok %d - %s # SKIP %s\n", number, test->name,
			       reason);
			break;
		default:
			failures++;
			ktap_note("%s", reason);
			printf("not ok %d - %s\n", number, test->name);
		}
		fflush(stdout);
		if (after)
			after(context);
	}
	return failures;
}
