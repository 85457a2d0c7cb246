/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The command line of a program: one table says how it is read and what --help
 * prints of it.
 */
#ifndef GUEST_COMMAND_H
#define GUEST_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An option, made by one of the macros below; exactly one of the last four is set. */
struct choice {
	char letter;
	const char *name;
	const char *value;	/* what --help calls the value; NULL takes none */
	const char *help;	/* lines; NULL: is not shown */
	bool *flag;		/* becomes true */
	uint32_t *number;
	const char **text;
	bool (*take)(const char *text);	/* false: the value makes no sense */
};

#define CHOICE_FLAG(letter, name, into, help) \
	{ letter, name, NULL, help, .flag = (into) }
#define CHOICE_NUMBER(letter, name, value, into, help) \
	{ letter, name, value, help, .number = (into) }
#define CHOICE_TEXT(letter, name, value, into, help) \
	{ letter, name, value, help, .text = (into) }
#define CHOICE_CALL(letter, name, value, function, help) \
	{ letter, name, value, help, .take = (function) }
/* The option of every program here: which device, as device_open() takes it. */
#define CHOICE_DEVICE(into) \
	CHOICE_TEXT('d', "device", "NAME", into, \
		    "the device (default: $RDMA_DEV, else the only one)")
/* Of those that print KTAP: the cases to run, for ktap_run(). */
#define CHOICE_ONLY(into) \
	CHOICE_TEXT('o', "only", "TEXT", into, "only cases with TEXT in their name")

#define MAX_CHOICES 16

struct command {
	const char *name;
	const char *words;	/* what follows the options; further lines are other forms */
	const char *about;	/* lines */
	const char *more;	/* lines behind the options; may be NULL */
	const struct choice *choices;
	size_t count;		/* at most MAX_CHOICES */
};

/* The last two members, of an array. */
#define COMMAND_CHOICES(array) \
	.choices = (array), .count = sizeof(array) / sizeof((array)[0])

/*
 * Reads options; --help is one of every program. Returns where the words behind
 * them begin. Ends the program after --help (status 0), and after an option that
 * is none, lacks its value, or has one that makes no sense (status 2).
 */
int command_read(const struct command *command, int argc, char **argv);

/* Says what is wrong and where to read about it; gives the exit status for that, 2. */
int command_refuse(const struct command *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
