/**
 * Sends the reports in the outbox until the server has answered for each of them.
 *
 * A report leaves the outbox only after one of three answers that only a Sottovoce server gives: it
 * stored the report, it had the report already, or it refuses the report and names the reason. After
 * anything else the sender tries again later, with the same bytes and the same nonce.
 */

import type { Rejection } from "../shared/errors.js";
import { batchToBytes } from "../shared/wire.js";
import type { Outbox } from "./outbox.js";
import { objectIn, type Request, type Response } from "./transport.js";

const MOST_TOGETHER = 1000;
const MOST_BYTES = 4 * 1024 * 1024;
/** The longest wait after one failure, in seconds. It doubles with each further failure … */
const FIRST_WAIT = 1;
/** … up to this. */
const LONGEST_WAIT = 3600;
const REASONS: readonly string[] = [
  "unknown release",
  "unknown population",
  "unknown question",
  "wrong length",
  "not finite",
  "implausible",
  "malformed",
  "truncated",
  "newer wire version",
  "archived",
] satisfies Rejection[];

/** When to try again: exponential backoff with full jitter, by a monotonic clock. */
export class Backoff {
  #failures = 0;
  #notBefore: number;

  constructor(
    readonly clock: () => number,
    readonly jitter: () => number,
  ) {
    this.#notBefore = clock();
  }

  /** Seconds until the next try may begin. */
  get wait(): number {
    return Math.max(0, this.#notBefore - this.clock());
  }

  /** Note a failure: wait, and at least as long as the Retry-After of an answer says. */
  failed(response: Response | undefined): void {
    const said = response?.retryAfter?.trim() ?? "";
    const asked = /^[0-9]{1,9}$/.test(said) ? Math.min(LONGEST_WAIT, +said) : 0;
    const spread = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** Math.min(this.#failures++, 32));
    this.#notBefore = this.clock() + asked + spread * this.jitter();
  }

  /** Note a success: the next try may begin at once. */
  succeeded(): void {
    this.#failures = 0;
    this.#notBefore = this.clock();
  }
}

type Verdict = { refused: Map<number, string>; repeated: number };

export class Sender {
  /** How many reports were refused for good, by reason. */
  readonly refused: Record<string, number> = {};
  /** How many the server had already, because its answer did not arrive. */
  repeated = 0;
  #together = MOST_TOGETHER;

  constructor(
    readonly server: string,
    readonly outbox: Outbox,
    readonly backoff: Backoff,
    readonly ask: (request: Request) => Promise<Response | undefined>,
  ) {}

  /** Send reports until none is left or one fails; return how many the server has taken. */
  async send(): Promise<number> {
    let taken = 0;
    while (!this.backoff.wait) {
      const reports = await this.#next();
      if (!reports.length) break;
      const response = await this.ask(this.#request(reports.map((each) => each.report)));
      const verdict = verdictIn(response, reports.length);
      if (verdict) {
        this.backoff.succeeded();
        this.#together = Math.min(MOST_TOGETHER, 2 * this.#together);
        this.repeated += verdict.repeated;
        for (const [place, reason] of verdict.refused) {
          const gone = await this.outbox.remove([reports[place]?.number as number]);
          this.refused[reason] = (this.refused[reason] ?? 0) + gone;
        }
        const rest = reports.filter((_, i) => !verdict.refused.has(i));
        taken += await this.outbox.remove(rest.map((each) => each.number));
      } else if (reports.length > 1 && refusal(response) !== undefined) {
        // Too large, or one bad report spoils the request: send fewer, at last one by one.
        this.#together = reports.length >> 1;
      } else {
        this.backoff.failed(response);
        break;
      }
    }
    return taken;
  }

  async #next() {
    const reports = await this.outbox.oldest(this.#together);
    let size = 0;
    return reports.filter(({ report }, i) => (size += report.length) <= MOST_BYTES || !i);
  }

  #request(reports: Uint8Array[]): Request {
    const headers = { Accept: "application/json", "Content-Type": "application/octet-stream" };
    const [url, first] = [`${this.server}/reports`, reports[0] as Uint8Array];
    if (reports.length === 1) return { method: "POST", url, headers, body: first };
    return { method: "POST", url: `${url}/batch`, headers, body: batchToBytes(reports) };
  }
}

/** Return what became of the reports of a request; undefined if the answer leaves any doubt. */
function verdictIn(response: Response | undefined, count: number): Verdict | undefined {
  const reason = refusal(response);
  if (count === 1 && reason !== undefined) return { refused: new Map([[0, reason]]), repeated: 0 };
  const table = objectIn(response?.body);
  if (!response || !table || response.status < 200 || response.status >= 300) return undefined;
  const { stored, repeated, refused: entries } = table as Record<string, number> & { refused?: unknown };
  if (!Number.isInteger(stored) || !Number.isInteger(repeated) || !Array.isArray(entries)) return undefined;
  const refused = new Map<number, string>();
  for (const entry of entries) {
    const { index, reason } = (entry ?? {}) as Record<string, unknown>;
    const fits = Number.isInteger(index) && (index as number) >= 0 && (index as number) < count;
    if (!fits || typeof reason !== "string") return undefined;
    refused.set(index as number, known(reason));
  }
  // No report may be named twice, and no server's default answer may pass for a verdict.
  const [one, again] = [stored as number, repeated as number];
  const whole = one >= 0 && again >= 0 && one + again + entries.length === count;
  return whole && refused.size === entries.length ? { refused, repeated: again } : undefined;
}

/** Return why the server refuses a request for good, if it does. */
function refusal(response: Response | undefined): string | undefined {
  const table = objectIn(response?.body);
  const status = response?.status ?? 0;
  if (!table || status < 400 || status >= 500 || status === 408 || status === 429) return undefined;
  if (typeof table.reason === "string") return known(table.reason);
  const inItself = (status === 413 || status === 415) && typeof table.error === "string";
  return inItself ? `status ${status}` : undefined;
}

/** Replace reasons that are not known here, so that no server can make up endlessly many. */
const known = (reason: string): string => (REASONS.includes(reason) ? reason : "other");
