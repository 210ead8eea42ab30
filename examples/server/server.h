/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * server.h - what the parts of the cache daemon know of each other.
 */
#ifndef SERVER_H
#define SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "accounts.h"

#define NR_DBS 16
#define MAX_TENANTS 64
#define MAX_WORKERS 64
#define MAX_REQUEST (16u << 20) /* bytes of one command; more ends the connection */
#define MAX_ARGUMENTS 100000	/* of one command */
#define MAX_INLINE 65536	/* bytes of a command without a length */
#define MAX_PENDING (1u << 20)	/* bytes that wait to be sent: no command is read meanwhile */
#define KEY_OVERHEAD 32		/* bytes a key costs beside its block: its share of the table */

/* -- tenants (tenant.c) -- */

struct entry;

/* A list of entries; under the tenant's mutex. */
struct entry_list {
	struct entry *first, *last;
};

struct tenant {
	char name[32], password[64]; /* without a password: whoever says nothing */
	uint64_t max, high, keys_max, connection_max;
	bool evicts; /* at the limit the oldest keys go; else commands are refused */
	struct account *account, *keys, *connections; /* all, and its two parts */

	pthread_mutex_t mutex; /* all changes of keys; innermost */
	struct entry_list oldest;
	struct entry *looked_at; /* by store_tidy(), next */
	struct entry *garbage;	 /* taken out, and not yet freed */
	unsigned int nr_garbage;
	uint64_t nr_expiring; /* keys whose time will be over */
	_Atomic uint64_t nr_keys[NR_DBS];
	_Atomic int64_t last_turn; /* of its slowed connections, ms */
	_Atomic uint64_t evicted, expired, refused, slowed, commands, nr_connections;
};

struct settings {
	unsigned int nr_workers, port, http_port;
	uint64_t max;		   /* of the whole server */
	uint64_t connections_each; /* that a tenant may have: its share of the descriptors */
	unsigned int nr_tenants;
	struct tenant *tenant[MAX_TENANTS]; /* [0]: connections that nobody has claimed yet */
	struct account *server;
};

extern struct settings settings;

bool tenant_add(const char *text); /* NAME[:PASSWORD],max=BYTES,high=BYTES,policy=evict|refuse */
bool tenant_make_accounts(void);
struct tenant *tenant_by_password(const char *name, const char *password); /* name may be NULL */
struct tenant *tenant_open(void); /* who needs no password; NULL: nobody */
bool tenant_is_slowed(struct tenant *tenant);
bool parse_size(const char *text, uint64_t *ret_size);

/* -- keys and values (store.c, store_room.c, table.c) -- */

struct bytes {
	const char *at;
	size_t length;
};

struct place {
	struct tenant *tenant;
	unsigned int db;
	struct bytes key;
};

int64_t store_now(void); /* ms */
bool store_open(void);
void store_close(void);
struct buffer;
/* Answers with the value; false: there is none, and nothing was added. */
bool store_get(const struct place *place, struct buffer *out);
bool store_has(const struct place *place);

enum store_condition { STORE_ALWAYS, STORE_IF_ABSENT, STORE_IF_PRESENT };
enum store_answer { STORE_DONE, STORE_CONDITION, STORE_FULL, STORE_NO_NUMBER, STORE_OVERFLOW };
/* expiry: ms, 0: never, -1: as it was. */
enum store_answer store_set(const struct place *place, struct bytes value, int64_t expiry,
			    enum store_condition condition);
enum store_answer store_add(const struct place *place, int64_t step, int64_t *ret_value);
bool store_delete(const struct place *place);
bool store_expire(const struct place *place, int64_t expiry); /* false: there is none */
int64_t store_expiry(const struct place *place);	      /* ms; -1: never, -2: none */
void store_flush(struct tenant *tenant, unsigned int db);
uint64_t store_reclaim(uint64_t wanted, void *tenant);
bool store_tidy(struct tenant *tenant); /* some of what is over goes, and garbage; any? */
void store_tidy_all(void);

/* -- what is said to a client (reply.c) -- */

/* Bytes, charged to an account as they are allocated; those in front are done. */
struct buffer {
	char *at;
	size_t done, length, size;
	struct account *account;
	bool failed; /* it was refused more; what was added is lost */
};

bool buffer_reserve(struct buffer *buffer, size_t more);
void buffer_add(struct buffer *buffer, const void *bytes, size_t length);
size_t buffer_left(const struct buffer *buffer);
void buffer_take(struct buffer *buffer, size_t length); /* that much more is done */
void buffer_free(struct buffer *buffer);
/* To another account: false and nothing changed where that refuses. */
bool buffer_move(struct buffer *buffer, struct account *account);

void reply_status(struct buffer *out, const char *text);
void reply_error(struct buffer *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void reply_number(struct buffer *out, int64_t number);
void reply_bulk(struct buffer *out, struct bytes bytes);
void reply_text(struct buffer *out, const char *text);
void reply_null(struct buffer *out);
void reply_array(struct buffer *out, size_t nr);

/* -- connections (connection.c, worker.c) -- */

struct worker;

/* How far the request that is coming in has been looked at. */
struct scan {
	size_t at; /* from where it begins */
	int64_t nr_left;
	bool begun, whole;
};

struct connection {
	int fd;
	struct worker *worker;
	struct connection *next, **link; /* of its worker; under the worker's mutex */
	struct tenant *tenant;
	unsigned int db;
	uint64_t id;
	char name[64];
	struct buffer in, out;
	struct scan scan;
	int64_t since, resume_at; /* ms; resume_at: 0, or when a slowed one may go on */
	uint32_t interest;	  /* what epoll waits for */
	bool authorized;
	bool closing; /* no more commands; it ends when the answers are sent */
	bool gone;    /* nobody can be told anything */
	bool more;    /* its turn was over before its requests were */
	bool yields;  /* its turn is over: that took long */
};

struct connection *connection_open(int fd, uint64_t id);
void connection_free(struct connection *connection);
/* Reads, does and answers for one turn; false: it is over. */
bool connection_serve(struct connection *connection);
bool connection_reads(const struct connection *connection); /* now */
bool connection_enter_tenant(struct connection *connection, struct tenant *tenant);

bool workers_start(void);
void workers_stop(void);
void workers_take(int fd);

/* -- requests (request.c) -- */

#define FEW 64 /* arguments, and the most words of a line */

struct request {
	struct connection *connection;
	struct account *payer;
	struct bytes *argument;
	size_t nr_arguments;
	struct bytes few[FEW];
};

/* Is a whole one there? Where it is none, or none that may be, the client is told and it is over.
 */
bool request_is_there(struct connection *connection);
void request_do(struct connection *connection);

/* -- commands (command.c, command_keys.c) -- */

typedef void command_fn(struct request *request);
void command_run(struct request *request);
bool argument_is(const struct bytes *argument, const char *word);
bool argument_number(const struct bytes *argument, int64_t *ret_number);

command_fn command_get, command_set, command_mget, command_mset, command_del, command_exists,
	command_incr, command_decr, command_incrby, command_expire, command_pexpire, command_ttl,
	command_pttl, command_dbsize, command_flushdb;

/* -- HTTP (http.c) -- */

bool http_start(void);
void http_stop(void);
extern const char status_page[]; /* status_page.c */

#endif
