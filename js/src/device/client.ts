/** The client: a device that talks to a server that nobody has to trust. */

import * as check from "../shared/check.js";
import { BudgetSpent, DeviceError, SottovoceError, TransportError } from "../shared/errors.js";
import type { Release } from "../shared/release.js";
import { freshCoins, stickyCoins } from "./coins.js";
import { DecidingDevice } from "./deciding.js";
import type { Context } from "./encode.js";
import type { Agreement } from "./following.js";
import { Decision, KeptDecisions, LAST, NOT_ASKED } from "./kept_decisions.js";
import type { AnyLedger } from "./ledger.js";
import { type KeptRelease, Outbox } from "./outbox.js";
import type { Reward } from "./privatise.js";
import { randomBytes } from "./randomness.js";
import { Releases, type Verified } from "./releases.js";
import { Backoff, Sender } from "./sending.js";
import { memoryStore, type Store } from "./store.js";
import { type Request, type Response, send, type Transport } from "./transport.js";

export interface ClientSettings extends Agreement {
  /** The fingerprint of the experiment to take part in. */
  experiment: string;
  /** The public keys that may sign its releases, 64 hexadecimal digits each. */
  keys: readonly string[] | string;
  /** The most ε that one report may spend, whatever a release asks for. */
  mostEpsilon: number;
  /** What keeps decisions, reports until they are sent, and the newest release; in memory, if none. */
  outbox?: Store;
  /** Where ε is spent. Without one, the client reports once, and the outbox remembers that. */
  ledger?: AnyLedger;
  /** Whether a person keeps the same arm until the policy for them changes. */
  sticky?: boolean;
  /** The arm for people before the first release has come, and for those who have left. */
  default?: string;
  /** A signed release that came with the app, for its first start without a network. */
  shipped?: string;
  /** Seconds, on average, from one look for a newer release to the next. */
  refreshEvery?: number;
  /** Sends a request and returns the response; it rejects if none came. */
  transport?: Transport;
  /** For tests: seconds of a monotonic clock, and seconds since 1970; a pause; a number in [0, 1). */
  clock?: () => number;
  now?: () => number;
  sleep?: (seconds: number) => Promise<void>;
  jitter?: () => number;
}

const USUAL = {
  sticky: true,
  refreshEvery: 3600,
  transport: send,
  clock: () => performance.now() / 1000,
  now: () => Date.now() / 1000,
  sleep: (seconds: number) => new Promise<void>((done) => setTimeout(done, 1000 * seconds)),
  jitter: () => new DataView(randomBytes(4).buffer).getUint32(0) / 2 ** 32,
};

/**
 * One person's device. `choose` makes the requests, before it looks at the context: it asks for the
 * release when that is due, and sends the reports that wait. `report` never uses the network. An app
 * that will not choose again calls `flush`. Several tabs and processes may share the stores.
 */
export class Client {
  readonly #settings: ClientSettings & typeof USUAL;
  readonly #releases: Releases;
  readonly #outbox: Outbox;
  readonly #decisions: KeptDecisions;
  readonly #sender: Sender;
  readonly #looking: Backoff;
  #device: DecidingDevice | undefined;
  #known: Verified | undefined;
  #nextLook: number;
  #trouble: TransportError | undefined;
  #begun: Promise<void> | undefined;

  constructor(server: string, settings: ClientSettings) {
    const given = Object.entries(settings).filter(([, value]) => value !== undefined);
    const chosen = { ...USUAL, ...(Object.fromEntries(given) as unknown as ClientSettings) };
    this.#settings = chosen;
    const ask = (request: Request) => this.#ask(request);
    this.#releases = new Releases(server, chosen.experiment, chosen.keys, ask);
    check.epsilon(chosen.mostEpsilon, "most_epsilon");
    this.#outbox = new Outbox(chosen.outbox ?? memoryStore(), chosen.experiment, chosen.now);
    this.#decisions = new KeptDecisions(this.#outbox);
    this.#nextLook = chosen.clock();
    this.#looking = new Backoff(chosen.clock, chosen.jitter);
    const backoff = new Backoff(chosen.clock, chosen.jitter);
    this.#sender = new Sender(this.#releases.server, this.#outbox, backoff, ask);
  }

  /** The release in use, if there is one yet. */
  get release(): Release | undefined {
    return this.#known?.release;
  }

  /** The release in use as it was signed, to compare with what others were given. */
  get document(): string | undefined {
    return this.#known?.document;
  }

  /** How many reports this client has seen refused for good, by reason. */
  get refused(): Record<string, number> {
    return { ...this.#sender.refused };
  }

  /** How many reports wait to be sent, those that are not due yet among them. */
  async waiting(): Promise<number> {
    await this.#expire();
    return (await this.#outbox.count()).waiting;
  }

  /** How many decisions wait for their outcome. */
  async open(): Promise<number> {
    await this.#expire();
    return this.#decisions.count();
  }

  /**
   * Ask for a newer release now, and return whether there was one. If no server can be reached, the
   * client keeps the release that it has; also if the new one cannot be trusted, and raises.
   */
  async refresh(): Promise<boolean> {
    await this.#begin();
    const { clock, refreshEvery, jitter } = this.#settings;
    if (await this.#outbox.hasLeft()) return false;
    // With jitter, so that devices that began together do not come in the same second.
    this.#nextLook = clock() + refreshEvery * (0.5 + jitter());
    try {
      const moved = await this.#look();
      this.#looking.succeeded();
      return moved;
    } catch (error) {
      this.#nextLook = clock();
      this.#looking.failed(this.#releases.answer);
      if (error instanceof TransportError) {
        this.#trouble = error;
        return false;
      }
      throw error;
    }
  }

  /**
   * Decide for this person: return the arm, and what is needed to report on it later. It works offline,
   * once the client has a release. The ε of the report is spent now. A person whose budget is spent is
   * served all the same, and is not asked how it went.
   */
  async choose(context: Context): Promise<Decision> {
    await this.#begin();
    if (await this.#outbox.hasLeft()) {
      return this.#withoutPolicy(new DeviceError("this person has left the experiment"));
    }
    // The network comes first: nothing about this person decides whether there is a request.
    const due = !this.#device || this.#settings.clock() >= this.#nextLook;
    if (due && !this.#looking.wait) await this.#lookAndSend();
    const device = this.#device;
    if (!device) {
      const { message } = this.#trouble ?? new TransportError("none was asked for");
      const kind = (this.#trouble?.constructor ?? TransportError) as typeof TransportError;
      return this.#withoutPolicy(new kind(`a first release must come from the server; ${message}`));
    }
    await this.#expire();
    const coins = this.#settings.sticky ? stickyCoins(await this.#decisions.key()) : freshCoins;
    await this.#outbox.holdRoom();
    const drawn = await device.draw(context, coins);
    const decision = await this.#decisions.open(drawn);
    // The report on a refused context will say nothing, when the decision expires.
    if (drawn.trouble) throw drawn.trouble;
    return decision;
  }

  /**
   * Finish a decision: privatise its outcome, and keep the report. It is sent later.
   *
   * decision: what `choose` returned, or its id. reward: as the experiment counts rewards; null if no
   * outcome came: the report then tells nothing, and looks like any other.
   */
  async report(decision: Decision | string, { reward }: { reward: Reward }): Promise<void> {
    await this.#begin();
    const id = typeof decision === "string" ? decision : decision.id;
    if (id === NOT_ASKED) return;
    if (!this.#device) throw new DeviceError("choose must come before a report; nothing was chosen yet");
    await this.#decisions.report(id, this.#device.release.experiment, reward);
  }

  /** Leave the experiment for good: forget all that is kept of it, and send nothing more. */
  async leave(): Promise<void> {
    await this.#begin();
    await this.#outbox.leave();
    this.#device = this.#known = undefined;
  }

  /** Send the reports in the outbox; return how many the server has taken. */
  async send(): Promise<number> {
    await this.#expire();
    return this.#sender.send();
  }

  /** Send the reports in the outbox, with pauses after failures; return whether all are sent. */
  async flush(timeout = 60): Promise<boolean> {
    const { clock, sleep } = this.#settings;
    const deadline = clock() + timeout;
    for (;;) {
      await this.send();
      if (!(await this.#outbox.count()).due) return true;
      const { wait } = this.#sender.backoff;
      if (clock() + wait > deadline) return false;
      await sleep(wait);
    }
  }

  /** Follow what was kept, or what came with the app, before anything else. */
  #begin(): Promise<void> {
    this.#begun ??= (async () => {
      const { shipped } = this.#settings;
      if ((await this.#catchUp()) || shipped === undefined) return;
      const found = this.#releases.verify(shipped);
      const device = this.#made(found.release);
      if (await this.#outbox.keep(keptOf(found), undefined)) [this.#device, this.#known] = [device, found];
    })();
    this.#begun.catch(() => {
      this.#begun = undefined;
    });
    return this.#begun;
  }

  /** Ask for a newer release, and follow it if it continues what was followed so far. */
  async #look(): Promise<boolean> {
    const before = this.#known;
    const kept = await this.#catchUp();
    const known = this.#known;
    const found = await this.#releases.newest(known && { version: known.release.version, link: known.link });
    if (!found || found.link === this.#known?.link) return this.#known !== before;
    const device = this.#device ?? this.#made(found.release);
    device.check(found.release);
    if (await this.#outbox.keep(keptOf(found), kept)) {
      device.follow(found.release);
      [this.#device, this.#known] = [device, found];
    } else {
      // Another tab has moved on meanwhile: follow what it has kept, and look again later.
      await this.#catchUp();
    }
    return this.#known !== before;
  }

  /** Follow what another tab or process has kept since; return what is kept. */
  async #catchUp(): Promise<KeptRelease | undefined> {
    const kept = await this.#outbox.kept();
    if (kept && kept.version > (this.#known?.release.version ?? 0)) {
      try {
        const found = this.#releases.verify(kept.document);
        const device = this.#device ?? this.#made(found.release);
        device.follow(found.release);
        [this.#device, this.#known] = [device, found];
      } catch (error) {
        // Its key may not be trusted any more: then nothing has to continue what it signed.
        if (!(error instanceof SottovoceError)) throw error;
      }
    }
    return kept;
  }

  #made(release: Release): DecidingDevice {
    const { ledger = this.#onceEach(), ...agreed } = this.#settings;
    return new DecidingDevice(release, ledger, agreed);
  }

  /** The ledger of a client without one: its outbox remembers that the person has reported. */
  #onceEach(): AnyLedger {
    return {
      spend: async (_, { experiment }) => {
        if (await this.#outbox.noteReport(experiment)) return;
        throw new BudgetSpent(
          "a client without a ledger must report at most once; got a second report: pass ledger=Ledger(path," +
            " budget=…)",
        );
      },
    };
  }

  /** Serve the default arm, if there is one; nobody is asked how it went. */
  #withoutPolicy(trouble: SottovoceError): Decision {
    const arm = this.#settings.default;
    if (arm === undefined) throw trouble;
    return new Decision(NOT_ASKED, arm, LAST, false);
  }

  /** Let decisions end whose time is over. */
  async #expire(): Promise<void> {
    await this.#begin();
    if (this.#device) await this.#decisions.expire(this.#device.release.experiment);
  }

  async #lookAndSend(): Promise<void> {
    try {
      await this.refresh();
    } catch (error) {
      // With a good release at hand, a bad one must not keep a person from an arm.
      if (!this.#device || !(error instanceof SottovoceError)) throw error;
    }
    await this.send();
  }

  /** Send a request; undefined if no answer came. */
  async #ask(request: Request): Promise<Response | undefined> {
    try {
      return await this.#settings.transport(request);
    } catch {
      return undefined;
    }
  }
}

const keptOf = ({ release: { version }, link, document }: Verified): KeptRelease => ({ version, link, document });
