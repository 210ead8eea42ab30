// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * worker.c - the threads that serve connections, each with an epoll of its own.
 */
#define _GNU_SOURCE
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define TICK_MS 50
#define UNCLAIMED_MS 10000 /* how long a connection may say nothing of who it is ... */
#define CROWDED_MS 500	   /* ... and when there are many of those */

struct worker {
	pthread_t thread;
	int epoll, wake;
	pthread_mutex_t mutex; /* the list: connections are handed over by another thread */
	struct connection *connections;
	int64_t next_tick;
	_Atomic bool stop;
};

static struct worker workers[MAX_WORKERS];
static unsigned int nr_started;
static _Atomic uint64_t next_id;

/* -- one connection -- */

static void drop(struct connection *connection)
{
	struct worker *worker = connection->worker;

	pthread_mutex_lock(&worker->mutex);
	*connection->link = connection->next;
	if (connection->next)
		connection->next->link = connection->link;
	pthread_mutex_unlock(&worker->mutex);
	connection_free(connection);
}

/* Who has more to do gets another turn as soon as it may write, which is after the others. */
static void wait_for(struct connection *connection)
{
	bool writes = connection->more || buffer_left(&connection->out);
	uint32_t interest =
		(connection_reads(connection) ? EPOLLIN : 0u) | (writes ? EPOLLOUT : 0u);
	struct epoll_event event = { .events = interest, .data.ptr = connection };

	if (interest == connection->interest)
		return;
	connection->interest = interest;
	(void)epoll_ctl(connection->worker->epoll, EPOLL_CTL_MOD, connection->fd, &event);
}

static void serve(struct connection *connection, uint32_t events)
{
	/* Nobody is there any more, which epoll says also to those who did not ask. */
	if (!(events & (EPOLLHUP | EPOLLERR)) && connection_serve(connection))
		wait_for(connection);
	else
		drop(connection);
}

/* -- the thread -- */

static bool is_too_late(const struct connection *connection, int64_t now)
{
	struct tenant *nobody = settings.tenant[0];
	bool crowded = atomic_load(&nobody->nr_connections) > settings.connections_each / 2;

	return !connection->authorized && connection->tenant == nobody &&
	       now - connection->since > (crowded ? CROWDED_MS : UNCLAIMED_MS);
}

/* Slowed connections go on when it is time, and those that nobody claims end. */
static void tick(struct worker *worker)
{
	struct connection *connection, *next;
	int64_t now = store_now();

	if (now < worker->next_tick)
		return;
	worker->next_tick = now + TICK_MS;
	pthread_mutex_lock(&worker->mutex);
	connection = worker->connections;
	pthread_mutex_unlock(&worker->mutex);
	/* Only this thread takes some off, and new ones come before the first. */
	for (; connection; connection = next) {
		next = connection->next;
		if (is_too_late(connection, now))
			drop(connection);
		else if (connection->resume_at)
			serve(connection, 0);
	}
}

static void *work(void *argument)
{
	struct epoll_event events[64];
	struct worker *worker = argument;
	int nr, i;

	while (!atomic_load(&worker->stop)) {
		nr = epoll_wait(worker->epoll, events, 64, TICK_MS);
		for (i = 0; i < nr; i++)
			if (events[i].data.ptr)
				serve(events[i].data.ptr, events[i].events);
		tick(worker);
	}
	return NULL;
}

/* A new connection; by the thread that accepts. */
void workers_take(int fd)
{
	uint64_t id = atomic_fetch_add(&next_id, 1) + 1;
	struct worker *worker = &workers[id % nr_started];
	struct connection *connection = connection_open(fd, id);
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = connection };
	static const char full[] = "-ERR max number of clients reached\r\n";
	bool added;

	if (!connection) {
		(void)send(fd, full, sizeof(full) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		close(fd);
		return;
	}
	/* Where the open tenant has no room it is nobody's, and can still say who it is. */
	if (tenant_open())
		(void)connection_enter_tenant(connection, tenant_open());
	connection->worker = worker;
	connection->interest = EPOLLIN;
	/* Under the mutex both, so that the worker, which may have something to do at once, does
	 * not take it off the list before it is there. */
	pthread_mutex_lock(&worker->mutex);
	added = epoll_ctl(worker->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
	if (added) {
		connection->next = worker->connections;
		connection->link = &worker->connections;
		if (connection->next)
			connection->next->link = &connection->next;
		worker->connections = connection;
	}
	pthread_mutex_unlock(&worker->mutex);
	if (!added)
		connection_free(connection);
}

static bool start(struct worker *worker)
{
	struct epoll_event event = { .events = EPOLLIN };

	pthread_mutex_init(&worker->mutex, NULL);
	worker->epoll = epoll_create1(EPOLL_CLOEXEC);
	worker->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return worker->epoll >= 0 && worker->wake >= 0 &&
	       epoll_ctl(worker->epoll, EPOLL_CTL_ADD, worker->wake, &event) == 0 &&
	       pthread_create(&worker->thread, NULL, work, worker) == 0;
}

bool workers_start(void)
{
	while (nr_started < settings.nr_workers) {
		if (!start(&workers[nr_started]))
			return false;
		nr_started++;
	}
	return true;
}

void workers_stop(void)
{
	struct worker *worker;
	uint64_t one = 1;

	while (nr_started) {
		worker = &workers[--nr_started];
		atomic_store(&worker->stop, true);
		(void)!write(worker->wake, &one, sizeof(one));
		pthread_join(worker->thread, NULL);
		while (worker->connections)
			drop(worker->connections);
		close(worker->epoll);
		close(worker->wake);
	}
}
