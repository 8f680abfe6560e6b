/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The guest's front door: runs the shell commands that arrive on a TCP port, one per connection.
 *
 *     agent PORT
 *
 * The peer sends the command, a zero octet, and the command's input. The agent returns the output,
 * standard error included, and at the end, in one octet, the exit status (128 plus the number of
 * the signal that ended it). It prints GUEST-READY when it listens. A guest that is connected only
 * to its own QEMU needs neither keys nor a login.
 */
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void serve(int conn)
{
    char command[8192];
    size_t n = 0;

    /* One octet at a time: the rest belongs to the command. */
    while (n < sizeof(command) && read(conn, &command[n], 1) == 1 && command[n] != '\0')
        n++;
    if (n == sizeof(command) || command[n] != '\0')
        return;

    pid_t child = fork();
    if (child == 0) {
        for (int fd = 0; fd < 3; fd++)
            dup2(conn, fd);
        close(conn);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return;
    uint8_t code = (uint8_t)(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    if (write(conn, &code, 1) == 1)
        shutdown(conn, SHUT_WR);
}

int main(int argc, char **argv)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    int one = 1, door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (argc != 2)
        return 2;
    at.sin_port = htons((uint16_t)atoi(argv[1]));
    setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (door < 0 || bind(door, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(door, 64) != 0) {
        perror("agent");
        return 1;
    }
    puts("GUEST-READY");
    fflush(stdout);
    signal(SIGCHLD, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    for (;;) {
        int conn = accept(door, NULL, NULL);
        if (conn < 0)
            continue;
        if (fork() == 0) {
            signal(SIGCHLD, SIG_DFL);
            serve(conn);
            _exit(0);
        }
        close(conn);
    }
}
