// What each role may do, step by step: everything of the one before, and what is added. docs/permissions.md is the
// table behind it; a test holds the two together.
import type { Role } from '../admin/rights.ts';
import type { WordKey } from './words.ts';

export const TEAM_ROLES = ['owner', 'admin', 'staff', 'scanner'] as const satisfies readonly Role[];
export type TeamRole = (typeof TEAM_ROLES)[number];
/** What a program may be: nothing that only a person answers for. */
export const KEY_ROLES = ['admin', 'staff', 'scanner'] as const satisfies readonly TeamRole[];

interface Ability {
	readonly word: WordKey;
	/** The row of the table. */
	readonly action: string;
}

/** What comes with a role that the one below does not have. */
export const ABILITIES: Readonly<Record<TeamRole, readonly Ability[]>> = {
	scanner: [
		{ word: 'ability.see', action: 'see every event, venue and gate of the organization, and follow what happens to them' },
		{ word: 'ability.layouts', action: "see the layouts of the organization's venues, export and compare them" },
		{ word: 'ability.prices', action: "see the organization's pricing rules" },
	],
	staff: [
		{ word: 'ability.events', action: 'make events, change their descriptions, and their times while they are drafts' },
		{ word: 'ability.draw', action: 'import and generate layouts, and new versions of them' },
		{ word: 'ability.gates', action: 'open and close gates' },
		{ word: 'ability.venues', action: 'make and change venues and gates (staff: where the organization lets them)' },
		{ word: 'ability.holds', action: 'see who holds what of an event' },
		{ word: 'ability.memberships.see', action: "list customers' memberships" },
	],
	admin: [
		{ word: 'ability.lifecycle', action: 'publish, unpublish, go live, end, cancel, postpone, archive' },
		{ word: 'ability.schedule', action: 'change the times, venue and links of events that are not drafts; reschedule; delete drafts' },
		{ word: 'ability.rules', action: 'make, change and delete pricing rules' },
		{ word: 'ability.seats', action: 'take seats of an event out of sale by hand, and put them back' },
		{ word: 'ability.memberships', action: "grant and revoke customers' memberships" },
		{ word: 'ability.people', action: 'add people, change their roles, remove them' },
		{ word: 'ability.keys', action: 'make and revoke API keys' },
		{ word: 'ability.journal', action: "search the organization's journal" },
	],
	owner: [{ word: 'ability.policy', action: 'change the seating policy, but for what the platform has locked' }],
};

/** Nobody touches a rank above their own, or hands one out; the server has the last word. */
export function mayTouch(by: Role | undefined, current: Role): boolean {
	return by === 'owner' || (by === 'admin' && current !== 'owner');
}

export function mayGive(by: Role | undefined): readonly TeamRole[] {
	return by === 'owner' ? TEAM_ROLES : TEAM_ROLES.filter((role) => role !== 'owner');
}
