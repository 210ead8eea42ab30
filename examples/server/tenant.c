// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * tenant.c - tenants: what the command line says of them, their accounts, who is slowed down.
 */
#include "server.h"

#include <stdlib.h>
#include <string.h>

struct settings settings = { .nr_workers = 2, .port = 6390, .http_port = 6391 };

bool parse_size(const char *text, uint64_t *ret_size)
{
	static const char suffixes[] = "kmg";
	const char *suffix;
	char *end;
	uint64_t size = strtoull(text, &end, 10);
	unsigned int shift = 0;

	if (end == text || *text == '-')
		return false;
	suffix = *end ? strchr(suffixes, *end | 0x20) : NULL;
	if (suffix) {
		shift = 10 * (unsigned int)(suffix - suffixes + 1);
		end++;
	}
	if (*end || size > (uint64_t)INT64_MAX >> shift)
		return false;
	*ret_size = size << shift;
	return true;
}

static bool read_setting(struct tenant *tenant, const char *text)
{
	if (!strncmp(text, "max=", 4))
		return parse_size(text + 4, &tenant->max);
	if (!strncmp(text, "high=", 5))
		return parse_size(text + 5, &tenant->high);
	if (!strncmp(text, "connections=", 12))
		return parse_size(text + 12, &tenant->connection_max);
	if (!strcmp(text, "policy=evict") || !strcmp(text, "policy=refuse")) {
		tenant->evicts = text[7] == 'e';
		return true;
	}
	return false;
}

static bool read_name(struct tenant *tenant, char *text)
{
	char *password = strchr(text, ':');

	if (password)
		*password++ = '\0';
	if (!*text || strlen(text) >= sizeof(tenant->name) ||
	    (password && strlen(password) >= sizeof(tenant->password)))
		return false;
	strcpy(tenant->name, text);
	strcpy(tenant->password, password ? password : "");
	return true;
}

static bool is_known(const char *name)
{
	unsigned int i;

	for (i = 0; i < settings.nr_tenants; i++)
		if (!strcmp(name, settings.tenant[i]->name))
			return true;
	return false;
}

bool tenant_add(const char *text)
{
	struct tenant *tenant = calloc(1, sizeof(*tenant));
	char *copy = strdup(text), *rest = copy, *word;
	bool sound = tenant && copy && settings.nr_tenants < MAX_TENANTS;

	if (sound) {
		tenant->connection_max = 16 << 20;
		pthread_mutex_init(&tenant->mutex, NULL);
		sound = read_name(tenant, strsep(&rest, ",")) && !is_known(tenant->name);
	}
	while (sound && (word = strsep(&rest, ",")))
		sound = read_setting(tenant, word);
	free(copy);
	if (sound)
		settings.tenant[settings.nr_tenants++] = tenant;
	else
		free(tenant);
	return sound;
}

/* Of the limit an eighth is left for the buffers of connections, or nobody could ask a full tenant
 * for anything. */
static uint64_t max_of_keys(const struct tenant *tenant)
{
	uint64_t rest = tenant->max / 8;

	return tenant->max - (rest < tenant->connection_max ? rest : tenant->connection_max);
}

/* One of the two parts of a tenant's account. */
static struct account *make_part(struct tenant *tenant, const char *part, uint64_t max,
				 account_reclaim_fn *reclaim)
{
	char name[64];

	snprintf(name, sizeof(name), "%s's %s", tenant->name, part);
	return accounts->create(tenant->account, name, max, 0, reclaim, tenant);
}

static bool make_accounts(struct tenant *tenant)
{
	account_reclaim_fn *reclaim = tenant->evicts ? store_reclaim : NULL;

	tenant->account = accounts->create(settings.server, tenant->name, tenant->max, tenant->high,
					   reclaim, tenant);
	if (!tenant->account)
		return false;
	tenant->keys_max = max_of_keys(tenant);
	tenant->keys = make_part(tenant, "keys", tenant->keys_max, reclaim);
	tenant->connections = make_part(tenant, "connections", tenant->connection_max, NULL);
	return tenant->keys && tenant->connections;
}

/* The server, its tenants, and of each its keys and the buffers of its connections. */
bool tenant_make_accounts(void)
{
	unsigned int i;

	settings.server = accounts->create(NULL, "cache", settings.max, 0, NULL, NULL);
	if (!settings.server)
		return false;
	for (i = 0; i < settings.nr_tenants; i++)
		if (!make_accounts(settings.tenant[i]))
			return false;
	return true;
}

struct tenant *tenant_by_password(const char *name, const char *password)
{
	struct tenant *tenant;
	unsigned int i;

	for (i = 1; i < settings.nr_tenants; i++) {
		tenant = settings.tenant[i];
		if ((!name || !strcmp(name, tenant->name)) && *tenant->password &&
		    !strcmp(password, tenant->password))
			return tenant;
	}
	return NULL;
}

struct tenant *tenant_open(void)
{
	unsigned int i;

	for (i = 1; i < settings.nr_tenants; i++)
		if (!*settings.tenant[i]->password)
			return settings.tenant[i];
	return NULL;
}

/* Without what lies in stocks, which nobody holds, and after a FLUSHDB may be more than high. Of
 * its two parts, for they have no parts themselves: that is a line of each CPU to look at. */
static uint64_t held_by(struct tenant *tenant)
{
	struct account_figures keys, connections;

	accounts->figures(tenant->keys, &keys);
	accounts->figures(tenant->connections, &connections);
	return keys.usage + connections.usage;
}

/* Above high nothing is read from its sockets, but for a command now and then, so that it can
 * delete something. Whose keys are evicted gives them up there already. */
bool tenant_is_slowed(struct tenant *tenant)
{
	uint64_t held;

	if (!tenant->high || accounts->usage(tenant->account) <= tenant->high)
		return false;
	held = held_by(tenant);
	return held > tenant->high &&
	       !(tenant->evicts && store_reclaim(held - tenant->high, tenant));
}
