// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

static const struct choice help = {
	'h', "help", NULL, "this text", NULL, NULL, NULL, NULL
};

/* "-d, --device NAME"; returns how wide that is. */
static int left_side(const struct choice *choice, char *text, size_t bytes)
{
	return snprintf(text, bytes, "-%c, --%s%s%s", choice->letter,
			choice->name, choice->value ? " " : "",
			choice->value ? choice->value : "");
}

static void show_choice(const struct choice *choice, int width)
{
	const char *line = choice->help;
	char left[64];

	left_side(choice, left, sizeof(left));
	while (line) {
		const char *end = strchr(line, '\n');
		int length = end ? (int)(end - line) : (int)strlen(line);

		printf("  %-*s  %.*s\n", width, left, length, line);
		left[0] = '\0';
		line = end ? end + 1 : NULL;
	}
}

static void show_help(const struct command *command)
{
	const char *form = command->words;
	int width = 0, wide;
	char left[64];
	size_t i;

	for (i = 0; form; i++) {
		int length = (int)strcspn(form, "\n");

		printf("%s %s %.*s\n", i ? "      " : "Usage:", command->name,
		       length, form);
		form = form[length] ? form + length + 1 : NULL;
	}
	printf("%s\n\n", command->about);
	for (i = 0; i < command->count; i++) {
		wide = left_side(&command->choices[i], left, sizeof(left));
		if (command->choices[i].help && wide > width)
			width = wide;
	}
	for (i = 0; i < command->count; i++)
		show_choice(&command->choices[i], width);
	show_choice(&help, width);
	if (command->more)
		printf("\n%s\n", command->more);
}

int command_refuse(const struct command *command, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "%s: ", command->name);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "; see %s --help\n", command->name);
	return 2;
}

static bool number(const char *text, uint32_t *value)
{
	unsigned long long read;
	char *end;

	errno = 0;
	read = strtoull(text, &end, 0);
	if (errno || *end || end == text || *text == '-' || read > UINT32_MAX)
		return false;
	*value = (uint32_t)read;
	return true;
}

/* Whether the value, if it has one, makes sense. */
static bool apply(const struct choice *choice, const char *value)
{
	if (choice->flag)
		*choice->flag = true;
	if (choice->text)
		*choice->text = value;
	if (choice->number)
		return number(value, choice->number);
	return choice->take ? choice->take(value) : true;
}

int command_read(const struct command *command, int argc, char **argv)
{
	struct option options[MAX_CHOICES + 2] = { 0 };
	char letters[2 * MAX_CHOICES + 2], *letter = letters;
	const struct choice *choice;
	int found;
	size_t i;

	for (i = 0; i <= command->count && i <= MAX_CHOICES; i++) {
		choice = i < command->count ? &command->choices[i] : &help;
		options[i].name = choice->name;
		options[i].has_arg = choice->value ? required_argument :
						     no_argument;
		options[i].val = choice->letter;
		*letter++ = choice->letter;
		if (choice->value)
			*letter++ = ':';
	}
	*letter = '\0';
	while ((found = getopt_long(argc, argv, letters, options, NULL)) >= 0) {
		if (found == help.letter) {
			show_help(command);
			exit(EXIT_SUCCESS);
		}
		for (i = 0; i < command->count; i++)
			if (command->choices[i].letter == found)
				break;
		/* getopt_long() has said what is wrong. */
		if (i == command->count) {
			fprintf(stderr, "%s: see %s --help\n", command->name,
				command->name);
			exit(2);
		}
		choice = &command->choices[i];
		if (!apply(choice, optarg))
			exit(command_refuse(command, "--%s: \"%s\" makes no sense as %s",
					    choice->name, optarg,
					    choice->value));
	}
	return optind;
}
