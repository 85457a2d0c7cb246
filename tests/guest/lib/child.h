/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Another process of the same program, which does something and stays.
 */
#ifndef GUEST_CHILD_H
#define GUEST_CHILD_H

#include <sys/types.h>

/*
 * Starts this program with @argv and waits until it has said something on stdout.
 * Returns 0 or an errno; ECHILD if it ended without a word.
 */
int child_start(char *const argv[], pid_t *child);

/* Kills it. When this returns, the kernel has closed all it had open. */
void child_kill(pid_t child);

#endif
