// Who is signed in. The session itself is a cookie that no script can read; here is only what the screens show of it.
import { api, ask, BY_COOKIE, keepCsrfToken, Refusal, watchRefusals, type Schemas } from '../api/client.ts';
import { i18n, type Language, type MessageKey } from '../i18n/i18n.svelte.ts';

export type Account = Schemas['AccountView'];
export type SessionEntry = Schemas['SessionEntry'];

/** Lives as long as the session's own cookie, and says only that there is one: strangers need not be asked about. */
const HINT = 'vg_signed_in';
/** What the tabs tell each other. */
type Word = 'began' | 'changed' | 'ended' | 'signed_out';

type Notice = Extract<MessageKey, `session.notice.${string}`>;

export class Session {
	/** `asking` until the server has said who this is; `unreachable` when it could not. */
	standing = $state<'asking' | 'anonymous' | 'known' | 'unreachable'>('asking');
	user = $state.raw<Schemas['SessionUser'] | null>(null);
	organization = $state.raw<Schemas['SessionOrganization'] | null>(null);
	/** Everything about the person; follows a moment after signing in. */
	account = $state.raw<Account | null>(null);
	/** What happened to the session, until the person has seen it. */
	notice = $state<Notice | null>(null);
	/** What became of the places they held as a guest, when they signed in. */
	basket = $state.raw<Schemas['BasketView'] | null>(null);

	#tabs: BroadcastChannel | null = null;
	/** One more with each change of person: an answer that comes too late changes nothing. */
	#era = 0;

	/** Listens to the server's refusals and to the other tabs. */
	start(): () => void {
		const tabs = new BroadcastChannel('session');
		tabs.onmessage = (event: MessageEvent<Word>) => void this.#hear(event.data);
		this.#tabs = tabs;
		watchRefusals(this.#onRefusal);
		return () => {
			tabs.close();
			this.#tabs = null;
			watchRefusals(() => {});
		};
	}

	/** The session is at one organization; at the others the person is a stranger. */
	isAt(org: string): boolean {
		return this.standing === 'known' && this.organization?.slug === org;
	}

	async restore(): Promise<void> {
		if (!document.cookie.split('; ').includes(`${HINT}=1`)) {
			this.standing = 'anonymous';
			return;
		}
		if (this.standing !== 'known') this.standing = 'asking';
		await this.#load();
	}

	async signIn(org: string, email: string, password: string): Promise<void> {
		const body = { organization: org, email, password };
		const { data } = await ask(api.POST('/api/auth/login', { params: BY_COOKIE, body }));
		this.#begin({ data });
		this.basket = data.basket;
		if (data.basket.released > 0) this.notice = 'session.notice.released';
	}

	async register(org: string, name: string, email: string, password: string): Promise<void> {
		const body = { organization: org, name, email, password, locale: i18n.language };
		this.#begin(await ask(api.POST('/api/auth/register', { params: BY_COOKIE, body })));
	}

	async continueAsGuest(org: string): Promise<void> {
		const body = { organization: org, locale: i18n.language };
		this.#begin(await ask(api.POST('/api/auth/guest', { params: BY_COOKIE, body })));
	}

	async signOut(): Promise<void> {
		try {
			await ask(api.POST('/api/auth/logout'));
		} catch (failure) {
			// A session that has ended by itself is what was asked for.
			if (!(failure instanceof Refusal && failure.code === 'unauthorized')) throw failure;
		}
		this.#end('session.notice.signed_out');
		this.#tell('signed_out');
	}

	async change(name: string, locale: Language): Promise<void> {
		await ask(api.PATCH('/api/me', { body: { name, locale } }));
		if (this.user) this.user = { ...this.user, name };
		if (this.account) this.account = { ...this.account, user: { ...this.account.user, name, locale } };
		i18n.choose(locale);
		this.#tell('changed');
	}

	async changePassword(current: string, next: string): Promise<void> {
		await ask(api.PUT('/api/me/password', { body: { current, new: next } }));
	}

	async sessions(): Promise<SessionEntry[]> {
		return (await ask(api.GET('/api/me/sessions'))).data;
	}

	async endSession(id: string): Promise<void> {
		await ask(api.DELETE('/api/me/sessions/{session_id}', { params: { path: { session_id: id } } }));
	}

	/** A guest has no password. */
	async deleteAccount(password: string | null): Promise<void> {
		await ask(api.POST('/api/me/delete', { body: { password } }));
		this.#end('session.notice.deleted');
		this.#tell('ended');
	}

	#begin({ data }: { data: Schemas['SessionView'] }): void {
		this.#era++;
		this.#take(data.user, data.organization, data.csrf_token);
		this.account = null;
		this.notice = null;
		writeHint(true);
		this.#tell('began');
		void this.#load();
	}

	#take(user: Schemas['SessionUser'], organization: Schemas['SessionOrganization'], csrfToken: string | null): void {
		this.user = user;
		this.organization = organization;
		this.standing = 'known';
		keepCsrfToken(csrfToken);
	}

	async #load(): Promise<void> {
		const era = this.#era;
		try {
			const { data } = await ask(api.GET('/api/me'));
			if (era !== this.#era) return;
			this.#take(data.user, data.organization, data.csrf_token);
			this.account = data;
			i18n.suggest(data.user.locale);
		} catch {
			// A session that has ended was dealt with on the way; anything else may pass.
			if (era === this.#era && this.standing === 'asking') this.standing = 'unreachable';
		}
	}

	#end(notice: Notice | null): void {
		this.#era++;
		this.standing = 'anonymous';
		this.user = this.organization = this.account = null;
		this.notice = notice;
		keepCsrfToken(null);
		writeHint(false);
	}

	/** A wrong password is also a 401, but says nothing about the session. */
	#onRefusal = (refusal: Refusal): void => {
		if (refusal.code === 'unauthorized' && this.standing !== 'anonymous') {
			this.#end('session.notice.ended');
			this.#tell('ended');
		}
		// Another tab may have signed in anew: with the token of that session the next try succeeds.
		if (refusal.code === 'csrf_failed') void this.#load();
	};

	#tell(word: Word): void {
		this.#tabs?.postMessage(word);
	}

	async #hear(word: Word): Promise<void> {
		if (word === 'began') this.#era++;
		if (word === 'began' || word === 'changed') await this.restore();
		else if (this.standing !== 'anonymous') {
			this.#end(word === 'ended' ? 'session.notice.ended' : 'session.notice.signed_out_elsewhere');
		}
	}
}

function writeHint(isSignedIn: boolean): void {
	const secure = location.protocol === 'https:' ? '; Secure' : '';
	document.cookie = `${HINT}=${isSignedIn ? '1; ' : '; Max-Age=0; '}Path=/; SameSite=Lax${secure}`;
}

export const session = new Session();
