// The pages of the office, loaded together: whoever opens one of them soon opens another.
export { default as HomePage } from './HomePage.svelte';
export { default as JournalPage } from './JournalPage.svelte';
export { default as KeysPage } from './KeysPage.svelte';
export { default as MembershipsPage } from './MembershipsPage.svelte';
export { default as TeamPage } from './TeamPage.svelte';
