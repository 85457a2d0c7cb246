// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "endpoint.h"

extern char **environ;

int child_start(char *const argv[], pid_t *child)
{
	posix_spawn_file_actions_t actions;
	struct pollfd wait = { .events = POLLIN };
	int ends[2], err;
	char byte;

	if (pipe(ends))
		return errno;
	wait.fd = ends[0];
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_addclose(&actions, ends[0]);
	err = posix_spawn(child, "/proc/self/exe", &actions, NULL, argv,
			  environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (!err && poll(&wait, 1, 3 * WAIT_MS) != 1)
		err = ETIMEDOUT;
	if (!err && read(ends[0], &byte, 1) != 1)
		err = ECHILD;
	close(ends[0]);
	return err;
}

void child_kill(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}
