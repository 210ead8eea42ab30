// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * owner_storm_hold.c - what a thread of the storm holds: kept in places, given back, handed on.
 */
#define _GNU_SOURCE
#include "owner_storm.h"

/* A place for units of a node: one that has some, or an empty one; or NULL. */
struct holding *holding_for(struct thread *self, const struct node *node)
{
	struct holding *holding, *empty = NULL;
	uint32_t i;

	for (i = 0; i < NR_HOLDINGS; i++) {
		holding = &self->holding[i];
		if (holding->in_use)
			continue;
		if (holding->node == node)
			return holding;
		if (!holding->node)
			empty = holding;
	}
	return empty;
}

/* What is held keeps the owner, so its reference may go before it. */
void empty_holding(struct holding *holding)
{
	struct pcpc_owner *owner = holding->reference ? holding->node->owner : NULL;
	struct node *node = holding->node;

	*holding = (struct holding){ 0 };
	pcpc_owner_put(owner);
	node_put(node);
}

/* Units that were charged; there is a reference for them, which may stay with them. */
void hold(struct thread *self, struct holding *holding, struct node *node, uint64_t units)
{
	account(node, NULL, units, true);
	if (node->fair)
		self->share += units;
	if (!holding->node)
		holding->node = node_get(node);
	holding->units += units;
	if (!holding->reference && below(&self->random, 4) == 0) {
		pcpc_owner_get(node->owner);
		holding->reference = true;
	}
}

/* Gives some of it back, with or without a delta. The books go first. */
void give_back(struct thread *self, struct holding *holding, uint64_t units)
{
	struct node *node = holding->node;
	struct pcpc_owner *owner = node->owner;
	int64_t delta = 0;

	if (below(&self->random, 3) == 0)
		delta = (int64_t)below(&self->random, 41) - 20;
	account(node, NULL, units, false);
	account_item(node, 0, delta);
	holding->units -= units;
	holding->in_use = true;
	if (delta)
		pcpc_uncharge_stat(owner, units, delta);
	else
		pcpc_uncharge(owner, units);
	if (node->fair)
		self->share -= units;
	if (!holding->units)
		empty_holding(holding);
	else
		holding->in_use = false;
	self->counts[UNCHARGES]++;
}

struct holding *some_holding(struct thread *self)
{
	struct holding *holding = &self->holding[below(&self->random, NR_HOLDINGS)];

	return holding->node && holding->units && !holding->in_use ? holding : NULL;
}

/* Units change hands. Those of shares do not. */
void swap_mail(struct thread *self)
{
	struct holding *mine = &self->holding[below(&self->random, NR_HOLDINGS)], other;
	struct holding *mail = &storm.mail[below(&self->random, NR_MAIL)];
	bool known;

	if (mine->in_use || (mine->node && mine->node->fair))
		return;
	pthread_mutex_lock(&storm.mail_lock);
	/* One place for a node. */
	known = mail->node && holding_for(self, mail->node) &&
		holding_for(self, mail->node)->node == mail->node;
	if (!known) {
		other = *mail;
		*mail = *mine;
		*mine = other;
	}
	pthread_mutex_unlock(&storm.mail_lock);
}

void give_all_back(struct thread *self)
{
	uint32_t i;

	for (i = 0; i < NR_HOLDINGS; i++)
		if (self->holding[i].node)
			give_back(self, &self->holding[i], self->holding[i].units);
}
