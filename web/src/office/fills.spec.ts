import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Counted } from '../admin/feed.svelte.ts';
import { makeEvent } from '../admin/sample.ts';
import { serve } from '../test/server.ts';
import { Fills } from './fills.svelte.ts';

const EVENT = makeEvent({ status: 'published', inventory_epoch: 1 });
const counts = (map_version: number, sold: number, over: Partial<Counted> = {}): Counted => ({
	event_id: EVENT.id, epoch: 1, map_version, total: 10, available: 10 - sold, held: 0, sold, blocked: 0, ...over,
});

async function counted(first: Counted): Promise<Fills> {
	serve({ [`GET /api/events/${EVENT.id}/occupancy`]: () => Response.json({ data: first }) });
	const fills = new Fills();
	await fills.count([EVENT]);
	return fills;
}

afterEach(() => vi.unstubAllGlobals());

describe('how full events are', () => {
	it('follows what the feed has counted', async () => {
		const fills = await counted(counts(4, 1));
		fills.take(counts(5, 3));

		expect(fills.known.get(EVENT.id)?.sold).toBe(3);
	});

	it('keeps what is newer, and takes places that were made anew', async () => {
		const fills = await counted(counts(4, 2));
		fills.take(counts(3, 1));
		expect(fills.known.get(EVENT.id)?.sold).toBe(2);
		fills.take(counts(1, 0, { epoch: 2 }));
		expect(fills.known.get(EVENT.id)?.sold).toBe(0);
	});

	it('says nothing of an event that is not shown', async () => {
		const fills = await counted(counts(4, 1));
		fills.take(counts(5, 3, { event_id: 'another' }));

		expect([...fills.known.keys()]).toEqual([EVENT.id]);
	});
});
