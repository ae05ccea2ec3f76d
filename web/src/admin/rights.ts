// What a role may do here. The server decides; this only spares people buttons that it would refuse.
import type { Schemas } from '../api/client.ts';

export type Role = Schemas['Role'];

export interface Rights {
	readonly see: boolean;
	/** Make events, change their words, and everything of a draft. */
	readonly change: boolean;
	/** Lifecycle, dates, venues of what people know of, deletion, the journal, the policy. */
	readonly lead: boolean;
	/** Make and change venues and gates; for staff only where the organization lets them. */
	readonly build: boolean;
	readonly openGates: boolean;
}

const SEE: readonly Role[] = ['scanner', 'staff', 'admin', 'owner'];
const CHANGE: readonly Role[] = ['staff', 'admin', 'owner'];
const LEAD: readonly Role[] = ['admin', 'owner'];

export function mayOrganise(role: Role | undefined): boolean {
	return role !== undefined && SEE.includes(role);
}

export function rightsOf(role: Role, staffMayChangeVenues: boolean): Rights {
	const [change, lead] = [CHANGE.includes(role), LEAD.includes(role)];
	return { see: SEE.includes(role), change, lead, build: lead || (change && staffMayChangeVenues), openGates: change };
}
