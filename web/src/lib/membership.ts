// How a membership stands now. The dates decide as well: its status is not touched on the day it begins or ends.
import type { Schemas } from '../api/client.ts';
import { day, t, type MessageKey } from '../i18n/i18n.svelte.ts';
import type { IconName } from './Icon.svelte';
import { serverNow } from './server-time.ts';

type Membership = Pick<Schemas['OwnMembership'], 'status' | 'valid_from' | 'valid_to'>;
export type Standing = Extract<MessageKey, `membership.${'active' | 'expired' | 'future' | 'revoked'}`>;

export const FACE: Readonly<Record<Standing, { readonly icon: IconName; readonly tone: string }>> = {
	'membership.active': { icon: 'check', tone: 'ok' },
	'membership.expired': { icon: 'x', tone: '' },
	'membership.future': { icon: 'pause', tone: 'brand' },
	'membership.revoked': { icon: 'x', tone: 'bad' },
};

export function standingOf({ status, valid_from, valid_to }: Membership): Standing {
	if (status === 'revoked') return 'membership.revoked';
	if (status === 'expired' || (valid_to !== null && Date.parse(valid_to) <= serverNow())) return 'membership.expired';
	return Date.parse(valid_from) > serverNow() ? 'membership.future' : 'membership.active';
}

/** From when or until when it counts, in words. */
export function spanOf({ valid_from, valid_to }: Membership, standing: Standing): string {
	if (standing === 'membership.future') return t('membership.from', { day: day(new Date(valid_from)) });
	if (valid_to === null) return t('membership.open_ended');
	const isPast = Date.parse(valid_to) <= serverNow();
	return t(isPast ? 'membership.until.past' : 'membership.until', { day: day(new Date(valid_to)) });
}
